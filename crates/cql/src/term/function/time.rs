//! Functions of times and durations.

use types::time::{MILLIS_PER_DAY, NANOS_PER_DAY};
use types::{CqlType, Duration, Uuid};

use crate::error::CqlError;

/// Milliseconds since 1970 of a value of a time type; none of the empty value, which is no time.
pub fn millis_of(ty: &CqlType, value: &[u8]) -> Result<Option<i64>, String> {
    Ok(match ty {
        CqlType::Timestamp => ty.as_i64(value),
        CqlType::Date => ty.as_i64(value).and_then(|days| days.checked_mul(MILLIS_PER_DAY)),
        CqlType::TimeUuid => {
            // what a function made of a time that a UUID cannot say
            ty.validate(value).map_err(|error| error.to_string())?;
            Uuid::from_value(value).and_then(Uuid::unix_millis)
        }
        _ => None,
    })
}

/// The date of a time. Java rounds whole seconds down and days towards 1970: so does this.
pub fn date_of_millis(millis: i64) -> Vec<u8> {
    let days = millis.div_euclid(1000) / (MILLIS_PER_DAY / 1000);
    ((days + (1 << 31)) as u32).to_be_bytes().to_vec()
}

/// The time of day of a time.
pub fn time_of_millis(millis: i64) -> Vec<u8> {
    let nanos = millis.rem_euclid(MILLIS_PER_DAY) * 1_000_000 % NANOS_PER_DAY;
    nanos.to_be_bytes().to_vec()
}

fn from_millis(ty: &CqlType, millis: i64) -> Vec<u8> {
    match ty {
        CqlType::Date => date_of_millis(millis),
        _ => millis.to_be_bytes().to_vec(),
    }
}

/// A timestamp or date with a duration added to it, or taken from it.
pub fn add_duration(
    ty: &CqlType,
    arguments: &[Option<&[u8]>],
    subtract: bool,
) -> Result<Option<Vec<u8>>, String> {
    let [Some(time), Some(duration)] = arguments else { return Ok(None) };
    let Some(millis) = millis_of(ty, time)? else { return Ok(None) };
    let duration = Duration::from_bytes(duration).map_err(|error| error.to_string())?;
    if *ty == CqlType::Date && duration.nanos != 0 {
        let shown = CqlType::Duration.to_text(&duration.to_bytes());
        return Err(format!("The duration must have a day precision. Was: {shown}"));
    }
    if *ty == CqlType::Timestamp && duration.nanos % 1_000_000 != 0 {
        let shown = CqlType::Duration.to_text(&duration.to_bytes());
        return Err(format!("The duration must have a millisecond precision. Was: {shown}"));
    }
    let millis = if subtract { duration.subtract_from(millis) } else { duration.add_to(millis) };
    Ok(Some(from_millis(ty, millis)))
}

/// `floor(time, duration)` and `floor(time, duration, start)`; a `timeuuid` gives a timestamp.
pub fn floor(types: &[CqlType], arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, CqlError> {
    let (Some(ty), [Some(time), Some(duration), start @ ..]) = (types.first(), arguments) else {
        return Ok(None);
    };
    let invalid = |error: &dyn std::fmt::Display| CqlError::invalid(error.to_string());
    let length = Duration::from_bytes(duration).map_err(|error| invalid(&error))?;
    if *ty == CqlType::Time {
        let Some(nanos) = ty.as_i64(time) else { return Ok(None) };
        let floor = length.floor_time(nanos).map_err(|error| invalid(&error))?;
        return Ok(Some(floor.to_be_bytes().to_vec()));
    }
    let Some(millis) = millis_of(ty, time).map_err(CqlError::Invalid)? else { return Ok(None) };
    let start = match (start.first(), types.get(2)) {
        (Some(Some(start)), Some(ty)) => match millis_of(ty, start).map_err(CqlError::Invalid)? {
            Some(start) => start,
            None => return Ok(None),
        },
        (Some(None), _) => return Ok(None),
        _ => 0,
    };
    let shown = || CqlType::Duration.to_text(duration);
    if *ty == CqlType::Date {
        if length.nanos != 0 {
            return Err(CqlError::invalid(format!(
                "The floor on date values cannot be computed for the {} duration as precision is below 1 day",
                shown()
            )));
        }
    } else if length.nanos % 1_000_000 != 0 {
        return Err(CqlError::invalid(format!(
            "The floor cannot be computed for the {} duration as precision is below 1 millisecond",
            shown()
        )));
    }
    let floor = length.floor_timestamp(millis, start).map_err(|error| invalid(&error))?;
    Ok(Some(from_millis(ty, floor)))
}
