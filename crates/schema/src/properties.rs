//! Properties of a statement: what stands after WITH (`cql3.statements.PropertyDefinitions`).

use crate::error::SchemaError;
use crate::jvm;

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyValue {
    /// A constant's text: a string without quotes, a number, a boolean, a UUID.
    Text(String),
    /// A map of constants.
    Map(Vec<(String, String)>),
}

/// Properties in the order of the statement.
pub type Properties = [(String, PropertyValue)];

/// Refuses a property that is defined twice.
pub(crate) fn check_unique(properties: &Properties) -> Result<(), SchemaError> {
    for (i, (name, _)) in properties.iter().enumerate() {
        if properties.iter().take(i).any(|(other, _)| other == name) {
            let text = format!("Multiple definitions for property '{name}'");
            return Err(SchemaError::Syntax(text));
        }
    }
    Ok(())
}

/// Refuses a property that is none of `known`.
pub(crate) fn check_known(properties: &Properties, known: &[&str]) -> Result<(), SchemaError> {
    let names: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
    match jvm::string_order(names, jvm::DEFAULT_CAPACITY).into_iter().find(|n| !known.contains(n)) {
        Some(name) => Err(SchemaError::Syntax(format!("Unknown property '{name}'"))),
        None => Ok(()),
    }
}

fn find<'a>(properties: &'a Properties, name: &str) -> Option<&'a PropertyValue> {
    properties.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

pub(crate) fn has(properties: &Properties, name: &str) -> bool {
    find(properties, name).is_some()
}

pub(crate) fn text<'a>(
    properties: &'a Properties,
    name: &str,
) -> Result<Option<&'a str>, SchemaError> {
    match find(properties, name) {
        None => Ok(None),
        Some(PropertyValue::Text(text)) => Ok(Some(text)),
        Some(PropertyValue::Map(_)) => Err(SchemaError::Syntax(format!(
            "Invalid value for property '{name}'. It should be a string"
        ))),
    }
}

pub(crate) fn map<'a>(
    properties: &'a Properties,
    name: &str,
) -> Result<Option<&'a [(String, String)]>, SchemaError> {
    match find(properties, name) {
        None => Ok(None),
        Some(PropertyValue::Map(map)) => Ok(Some(map)),
        Some(PropertyValue::Text(_)) => Err(SchemaError::Syntax(format!(
            "Invalid value for property '{name}'. It should be a map."
        ))),
    }
}

pub(crate) fn boolean(properties: &Properties, name: &str) -> Result<Option<bool>, SchemaError> {
    let Some(value) = text(properties, name)? else { return Ok(None) };
    match value.to_lowercase().as_str() {
        "1" | "true" | "yes" => Ok(Some(true)),
        "0" | "false" | "no" => Ok(Some(false)),
        _ => Err(SchemaError::Syntax(format!(
            "Invalid boolean value {value} for '{name}'. Positive values can be '1', 'true' or 'yes'. \
             Negative values can be '0', 'false' or 'no'."
        ))),
    }
}

pub(crate) fn int(properties: &Properties, name: &str) -> Result<Option<i32>, SchemaError> {
    let Some(value) = text(properties, name)? else { return Ok(None) };
    let parsed = value.parse();
    parsed
        .map(Some)
        .map_err(|_| SchemaError::Syntax(format!("Invalid integer value {value} for '{name}'")))
}

pub(crate) fn double(properties: &Properties, name: &str) -> Result<Option<f64>, SchemaError> {
    let Some(value) = text(properties, name)? else { return Ok(None) };
    let parsed = jvm::parse_double(value);
    parsed
        .map(Some)
        .ok_or_else(|| SchemaError::Syntax(format!("Invalid double value {value} for '{name}'")))
}
