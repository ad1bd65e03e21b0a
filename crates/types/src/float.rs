//! Text of `float` and `double`: what `Double.valueOf` takes, what `Double.toString` prints.

use std::fmt::LowerExp;

/// Parses a `double` as `Double.valueOf` does: blanks around, `NaN` and `Infinity` in that case only, a
/// type suffix, hexadecimal with a binary exponent.
pub fn parse_double(text: &str) -> Option<f64> {
    Some(match Shape::of(text)? {
        Shape::NaN => f64::NAN,
        Shape::Infinity { negative } => sign(negative, f64::INFINITY),
        Shape::Decimal(text) => text.parse().ok()?,
        Shape::Hex { negative, mantissa, exponent } => {
            sign(negative, f64::from_bits(round(mantissa, exponent, 52, -1022)))
        }
    })
}

/// Parses a `float` as `Float.valueOf` does, rounding once.
pub fn parse_float(text: &str) -> Option<f32> {
    Some(match Shape::of(text)? {
        Shape::NaN => f32::NAN,
        Shape::Infinity { negative } => sign(negative, f32::INFINITY),
        Shape::Decimal(text) => text.parse().ok()?,
        Shape::Hex { negative, mantissa, exponent } => {
            sign(negative, f32::from_bits(round(mantissa, exponent, 23, -126) as u32))
        }
    })
}

fn sign<T: std::ops::Neg<Output = T>>(negative: bool, value: T) -> T {
    if negative { -value } else { value }
}

enum Shape<'a> {
    NaN,
    Infinity {
        negative: bool,
    },
    Decimal(&'a str),
    /// `mantissa * 2^exponent`; the lowest bit of the mantissa stands for all bits cut off.
    Hex {
        negative: bool,
        mantissa: u64,
        exponent: i64,
    },
}

impl<'a> Shape<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(|character| character <= ' ');
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        match unsigned {
            "NaN" => return Some(Self::NaN),
            "Infinity" => return Some(Self::Infinity { negative }),
            _ => {}
        }
        let text = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
            return hexadecimal(negative, hex);
        }
        // What is left of Rust's grammar once its words for NaN and infinity are gone is Java's.
        let plain =
            |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
        unsigned.bytes().all(plain).then_some(Self::Decimal(text))
    }
}

/// Digits with a point, then `p` and an exponent, without the `0x`.
fn hexadecimal<'a>(negative: bool, text: &str) -> Option<Shape<'a>> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // An exponent beyond 32 bits ends in zero or infinity all the same.
    let limit = if exponent.starts_with('-') { i64::from(i32::MIN) } else { i64::from(i32::MAX) };
    let mut exponent = i64::from(exponent.parse::<i32>().unwrap_or(limit as i32));
    exponent -= 4 * i64::try_from(fraction.len()).ok()?;
    let mut mantissa = 0_u64;
    for byte in whole.bytes().chain(fraction.bytes()) {
        let digit = u64::from(crate::hex::digit(byte)?);
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            mantissa |= u64::from(digit != 0);
            exponent += 4;
        }
    }
    Some(Shape::Hex { negative, mantissa, exponent })
}

/// The bits of the float nearest to `mantissa * 2^exponent`, ties to even, for a format with so many
/// stored bits of fraction and such a least exponent.
fn round(mantissa: u64, exponent: i64, fraction_bits: u32, least: i64) -> u64 {
    if mantissa == 0 {
        return 0;
    }
    let highest = exponent + 63 - i64::from(mantissa.leading_zeros());
    let infinity = (2 - 2 * least).cast_unsigned() / 2;
    let infinity = (infinity * 2 - 1) << fraction_bits;
    if highest > 1 - least {
        return infinity;
    }
    // The unit of the last place: normal, or that of the subnormals.
    let unit = highest.max(least) - i64::from(fraction_bits);
    let shift = unit - exponent;
    let scaled = match u32::try_from(shift) {
        Err(_) => mantissa << shift.unsigned_abs().min(63),
        Ok(0) => mantissa,
        Ok(shift @ 1..64) => {
            let (kept, cut) = (mantissa >> shift, mantissa << (64 - shift));
            let half = 1_u64 << 63;
            kept + u64::from(cut > half || (cut == half && kept & 1 == 1))
        }
        Ok(64) => u64::from(mantissa > 1 << 63),
        Ok(_) => 0,
    };
    // A carry out of the fraction lands in the exponent, where it belongs.
    if highest < least {
        scaled
    } else {
        let biased = (highest - least).cast_unsigned();
        (biased << fraction_bits) + scaled
    }
}

/// The text of a `double` (`Double.toString`): the fewest digits that tell it from its neighbours, at least
/// one behind the point; scientific below 10^-3 and from 10^7.
pub fn format_double(value: f64) -> String {
    if value.is_infinite() { infinity(value < 0.0) } else { format_finite(value, value.is_nan()) }
}

/// The text of a `float`, as [`format_double`].
pub fn format_float(value: f32) -> String {
    if value.is_infinite() { infinity(value < 0.0) } else { format_finite(value, value.is_nan()) }
}

fn infinity(negative: bool) -> String {
    if negative { "-Infinity".to_owned() } else { "Infinity".to_owned() }
}

fn format_finite(value: impl LowerExp, nan: bool) -> String {
    if nan {
        return "NaN".to_owned();
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (minus, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let split = |at: usize| {
        let padded = format!("{digits:0<at$}");
        let (whole, fraction) = padded.split_at_checked(at).unwrap_or((&padded, ""));
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        format!("{minus}{whole}.{fraction}")
    };
    match exponent {
        0..7 => split(exponent.unsigned_abs() as usize + 1),
        -3..0 => {
            format!("{minus}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1))
        }
        _ => format!("{}E{exponent}", split(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn double_round_trip(bits: u64) {
            let value = f64::from_bits(bits);
            let again = parse_double(&format_double(value)).unwrap();
            prop_assert!(again.to_bits() == bits || value.is_nan() && again.is_nan());
        }

        #[test]
        fn float_round_trip(bits: u32) {
            let value = f32::from_bits(bits);
            let again = parse_float(&format_float(value)).unwrap();
            prop_assert!(again.to_bits() == bits || value.is_nan() && again.is_nan());
        }

        #[test]
        fn hexadecimal_is_exact(mantissa in 0u64..1 << 53, exponent in -1100i32..980) {
            let exact = mantissa as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
            let text = format!("0x{mantissa:x}p{exponent}");
            // Scaling in two steps rounds twice among the subnormals.
            prop_assume!(exact == 0.0 || exact.is_normal());
            if exact != 0.0 {
                prop_assert_eq!(parse_double(&text), Some(exact));
            }
        }

        #[test]
        fn any_text_parses_or_fails(text: String, shape in "[-+]?(0x)?[0-9a-f.]{0,20}[pe]?[-+]?[0-9]{0,12}[fd]?") {
            let _ = (parse_double(&text), parse_float(&text));
            let _ = (parse_double(&shape), parse_float(&shape));
        }
    }
}
