//! Numbers that may be none: JSON has no `NaN`.

use serde::{Deserialize, Deserializer, Serializer};

/// Null where it is not finite: no fact of a node is infinite.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match value.is_finite() {
        true => serializer.serialize_f64(*value),
        false => serializer.serialize_none(),
    }
}

/// `NaN` of null.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
