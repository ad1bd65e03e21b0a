//! Arbitrary-precision numbers: `varint` and `decimal` from bytes and text, and back
//! (`java.math.BigInteger` and `BigDecimal`).

use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// Text with more digits than this is split in halves: parsing digit by digit takes quadratic time.
const SPLIT_DIGITS: usize = 1000;

/// A decimal: `unscaled * 10^-scale`. Equality is that of the parts: 1.0 is not 1.00.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// All digits.
    pub unscaled: BigInt,
    /// How many of them stand behind the point; below zero, how many zeros follow.
    pub scale: i32,
}

impl Decimal {
    /// Reads a value of type `decimal`: an `i32` scale, then a `varint`. `None` under four bytes. A
    /// scale without digits, which Java refuses, is zero.
    pub fn from_bytes(value: &[u8]) -> Option<Self> {
        let (scale, unscaled) = value.split_first_chunk::<4>()?;
        let unscaled = BigInt::from_signed_bytes_be(unscaled);
        Some(Self { unscaled, scale: i32::from_be_bytes(*scale) })
    }

    /// The value of type `decimal`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.scale.to_be_bytes().to_vec();
        out.extend(self.unscaled.to_signed_bytes_be());
        out
    }

    /// Parses what `new BigDecimal(String)` takes: digits with at most one point, and an exponent.
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (negative, mantissa) = sign(mantissa);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let magnitude = parse_digits(&digits)?;
        let scale = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
        let unscaled = if negative { -magnitude } else { magnitude };
        Some(Self { unscaled, scale: i32::try_from(scale).ok()? })
    }

    /// Numeric order: 1.0 equals 1.00. The work is bounded by the number of digits, not by the
    /// scales.
    pub fn compare(&self, other: &Self) -> Ordering {
        let sign = self.unscaled.sign();
        let signs = sign.cmp(&other.unscaled.sign());
        if signs.is_ne() || sign == Sign::NoSign {
            return signs;
        }
        let by_sign = |order: Ordering| if sign == Sign::Minus { order.reverse() } else { order };
        let ((low, high), (other_low, other_high)) = (self.magnitude(), other.magnitude());
        if high < other_low {
            return by_sign(Ordering::Less);
        }
        if other_high < low {
            return by_sign(Ordering::Greater);
        }
        // The magnitudes meet, so the scales differ by no more than the lengths do.
        let power = BigInt::from(10).pow(self.scale.abs_diff(other.scale));
        match self.scale.cmp(&other.scale) {
            Ordering::Equal => self.unscaled.cmp(&other.unscaled),
            Ordering::Less => (&self.unscaled * power).cmp(&other.unscaled),
            Ordering::Greater => self.unscaled.cmp(&(&other.unscaled * power)),
        }
    }

    /// Bounds of the place of the first digit, counted from the point to the left.
    fn magnitude(&self) -> (i64, i64) {
        // log10(2) is between 0.30102 and 0.30103.
        let bits = self.unscaled.bits().cast_signed();
        let low = (bits - 1) * 30_102 / 100_000 + 1;
        let high = bits * 30_103 / 100_000 + 1;
        (low - i64::from(self.scale), high - i64::from(self.scale))
    }
}

/// `BigDecimal.toString`: plain where the scale is not negative and few zeros lead, scientific
/// otherwise.
impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = self.unscaled.magnitude().to_string();
        if self.unscaled.sign() == Sign::Minus {
            f.write_str("-")?;
        }
        let places = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let point = places - i64::from(self.scale);
        if self.scale == 0 {
            f.write_str(&digits)
        } else if self.scale > 0 && point > -6 {
            match usize::try_from(point).ok().filter(|point| *point > 0) {
                Some(point) => {
                    let (whole, fraction) = digits.split_at_checked(point).unwrap_or((&digits, ""));
                    write!(f, "{whole}.{fraction}")
                }
                None => write!(f, "0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
            }
        } else {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
            let dot = if rest.is_empty() { "" } else { "." };
            match point - 1 {
                0 => write!(f, "{first}{dot}{rest}"),
                exponent => write!(f, "{first}{dot}{rest}E{exponent:+}"),
            }
        }
    }
}

/// Parses what `new BigInteger(String)` takes: a sign and digits.
pub fn parse_varint(text: &str) -> Option<BigInt> {
    let (negative, digits) = sign(text);
    let magnitude = parse_digits(digits)?;
    Some(if negative { -magnitude } else { magnitude })
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// At least one digit, and nothing else.
fn parse_digits(digits: &str) -> Option<BigInt> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    join_digits(digits)
}

fn join_digits(digits: &str) -> Option<BigInt> {
    if digits.len() <= SPLIT_DIGITS {
        return digits.parse().ok();
    }
    let low = digits.len() / 2;
    let (high, rest) = digits.split_at_checked(digits.len() - low)?;
    let power = BigInt::from(10).pow(u32::try_from(low).ok()?);
    Some(join_digits(high)? * power + join_digits(rest)?)
}

/// A sign and up to ten digits after leading zeros, within 32 bits.
fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
