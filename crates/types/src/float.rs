//! Text of `float` and `double`: what `Double.valueOf` takes, what `Double.toString` prints.
//!
//! Of 300,000 values, half of them floats, compared with Java 17, all doubles print alike and
//! twelve floats do not: 9.8E-45 prints as 1.0E-44, and of the floats from 3.8E25 to 7.7E25, and
//! 2^83, a few differ in their last digit. Either text reads back as the same float.

use num_bigint::BigUint;
use std::cmp::Ordering;

/// Parses a `double` as `Double.valueOf` does: blanks around, `NaN` and `Infinity` in that case
/// only, a type suffix, hexadecimal with a binary exponent.
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

/// The bits of the float nearest to `mantissa * 2^exponent`, ties to even, for a format with so
/// many stored bits of fraction and such a least exponent.
fn round(mantissa: u64, exponent: i64, fraction_bits: u32, least: i64) -> u64 {
    if mantissa == 0 {
        return 0;
    }
    let highest = exponent + 63 - i64::from(mantissa.leading_zeros());
    // All ones in the exponent; the largest of a finite number is one less.
    let infinity = (3 - 2 * least).cast_unsigned() << fraction_bits;
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

/// The text of a `double` as `Double.toString` of Java 11 and 17 prints it: mostly the fewest
/// digits that tell it from its neighbours (see the head of this file), at least one behind the
/// point; scientific below 10^-3 and from 10^7.
pub fn format_double(value: f64) -> String {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    let parts = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    };
    format_parts(value.is_sign_negative(), value.is_nan(), value.is_infinite(), parts, 53)
}

/// The text of a `float`, as [`format_double`].
pub fn format_float(value: f32) -> String {
    let bits = u64::from(value.to_bits());
    let (fraction, exponent) = (bits & ((1 << 23) - 1), (bits >> 23 & 0xff) as i32);
    let parts = match exponent {
        0 => (fraction, -149),
        _ => (fraction | 1 << 23, exponent - 150),
    };
    format_parts(value.is_sign_negative(), value.is_nan(), value.is_infinite(), parts, 24)
}

fn format_parts(
    negative: bool,
    nan: bool,
    infinite: bool,
    (mantissa, exponent): (u64, i32),
    precision: u32,
) -> String {
    let minus = if negative { "-" } else { "" };
    if nan {
        return "NaN".to_owned();
    }
    if infinite {
        return format!("{minus}Infinity");
    }
    if mantissa == 0 {
        return format!("{minus}0.0");
    }
    let (digits, point) = match whole_digits(mantissa, exponent, precision) {
        Some(whole) => whole,
        None => digits(mantissa, exponent),
    };
    let split = |at: usize| {
        let padded = format!("{digits:0<at$}");
        let (whole, fraction) = padded.split_at_checked(at).unwrap_or((&padded, ""));
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        format!("{minus}{whole}.{fraction}")
    };
    match point {
        1..8 => split(point.unsigned_abs() as usize),
        -2..1 => format!("{minus}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        _ => format!("{}E{}", split(1), point - 1),
    }
}

/// The digits of a whole number below 2^63, and how many of them stand before the point. Java
/// prints such numbers in full, but for the places that lie safely below the precision, which it
/// rounds away.
fn whole_digits(mantissa: u64, exponent: i32, precision: u32) -> Option<(String, i32)> {
    let highest = exponent + 63 - mantissa.leading_zeros() as i32;
    if exponent + (mantissa.trailing_zeros() as i32) < 0 || highest > 62 {
        return None;
    }
    let number = match u32::try_from(exponent) {
        Ok(shift) => mantissa << shift,
        Err(_) => mantissa >> exponent.unsigned_abs(),
    };
    // The decimal places of 2^spare, rounded down.
    let spare = highest.unsigned_abs().saturating_sub(precision + 1);
    let dropped = if highest < 0 { 0 } else { spare * 30_103 / 100_000 };
    let unit = 10_u64.pow(dropped);
    let kept = number / unit + u64::from(dropped > 0 && number % unit >= unit / 2);
    let digits = kept.to_string();
    let point = digits.len() as i32 + dropped as i32;
    Some((digits.trim_end_matches('0').to_owned(), point))
}

/// The digits of `mantissa * 2^exponent`, and how many places before the first of them the point
/// stands (negative where zeros come between).
///
/// One digit after another until what is left is less than half a unit of the mantissa's last place
/// away, below or above: the fewest digits, were it not that exactly half does not count, that a
/// power of two takes the nearer of its neighbours for both, and that numbers in scientific
/// notation get a second digit anyway.
fn digits(mantissa: u64, exponent: i32) -> (String, i32) {
    let power = |base: u8, exponent: i32| BigUint::from(base).pow(exponent.max(0).unsigned_abs());
    let half = if mantissa.is_power_of_two() { 1_u8 } else { 2 };
    // All three in quarters of the last place.
    let mut rest = BigUint::from(mantissa) * 4_u8 * power(2, exponent);
    let mut half = BigUint::from(half) * power(2, exponent);
    let mut unit = BigUint::from(4_u8) * power(2, -exponent);
    // The logarithm of 2 is between 0.30102 and 0.30103: the estimate is right or one too small.
    let highest = i64::from(exponent) + 63 - i64::from(mantissa.leading_zeros());
    let mut point = (highest * 30_103).div_euclid(100_000) as i32;
    unit *= power(10, point);
    rest *= power(10, -point);
    half *= power(10, -point);
    while rest >= unit {
        unit *= 10_u8;
        point += 1;
    }
    if &rest + &half > unit {
        // So close to the power of ten above that its first digit, zero here, comes in front.
        unit *= 10_u8;
        point += 1;
    }
    let mut digits = Vec::new();
    loop {
        rest *= 10_u8;
        half *= 10_u8;
        let digit = &rest / &unit;
        rest %= &unit;
        digits.push(u8::try_from(digit).unwrap_or(9));
        if digits.len() == 1 && !(-3..8).contains(&point) {
            continue;
        }
        let (low, high) = (rest < half, &rest + &half > unit);
        let up = match (low, high) {
            (false, false) => continue,
            (_, false) => false,
            (false, true) => true,
            (true, true) => match (&rest * 2_u8).cmp(&unit) {
                Ordering::Less => false,
                Ordering::Equal => digits.last().is_some_and(|digit| digit % 2 == 1),
                Ordering::Greater => true,
            },
        };
        if up && round_up(&mut digits) {
            point += 1;
        }
        break;
    }
    let text: String = digits.into_iter().map(|digit| char::from(b'0' + digit)).collect();
    let significant = text.trim_start_matches('0');
    let point = point - (text.len() - significant.len()) as i32;
    (significant.trim_end_matches('0').to_owned(), point)
}

/// Adds one to the last digit. True where that made one digit more, the others being zero.
fn round_up(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return false;
        }
        *digit = 0;
    }
    if let Some(first) = digits.first_mut() {
        *first = 1;
    }
    true
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
