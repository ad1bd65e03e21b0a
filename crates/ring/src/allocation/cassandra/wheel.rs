//! Arithmetic of Murmur3 tokens as Cassandra has it (`Murmur3Partitioner`, `LongToken`): sizes as
//! parts of the ring, points between two tokens. It is kept to the bit, roundings included.

/// Tokens but one: from the least to the largest (`MAXIMUM - MINIMUM`).
const SPAN: i128 = u64::MAX as i128;
const MAX: i128 = i64::MAX as i128;
const MIN: i128 = i64::MIN as i128;

/// `Token.size`: the part of the ring after `left` up to `right`; of a token to itself all of it.
pub fn size(left: i64, right: i64) -> f64 {
    let part = right.wrapping_sub(left) as f64 / 2_f64.powi(64);
    if part > 0.0 { part } else { part + 1.0 }
}

/// `IPartitioner.midpoint`.
pub fn midpoint(left: i64, right: i64) -> i64 {
    let (left, right) = (i128::from(left), i128::from(right));
    if left < right { ((left + right) >> 1) as i64 } else { wrapped((SPAN + left + right) >> 1) }
}

/// `IPartitioner.split`: the token at this part of the way. Java multiplies the decimal digits that
/// the double prints as, not its bits.
pub fn split(left: i64, right: i64, ratio: f64) -> i64 {
    let (digits, unit) = decimal(ratio);
    let (left, right) = (i128::from(left), i128::from(right));
    let way = if left < right { right - left } else { SPAN + right - left };
    // both parts have less than 2^64 * 10^18 < 2^124, and division rounds to 0 as toBigInteger does
    wrapped((way * digits + left * unit) / unit)
}

fn wrapped(token: i128) -> i64 {
    (if token <= MAX { token } else { MIN + (token - MAX) }) as i64
}

/// Digits of a number between 0 and 1, and the power of ten that they are parts of
/// (`BigDecimal.valueOf`).
fn decimal(number: f64) -> (i128, i128) {
    debug_assert!((0.01..1.0).contains(&number));
    let text = number.to_string();
    let digits = text.trim_start_matches("0.");
    let unit = 10_i128.pow(digits.len() as u32);
    (digits.parse().unwrap_or_default(), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parts() {
        assert_eq!(size(0, 1 << 62), 0.25);
        assert_eq!(size(1 << 62, 0), 0.75);
        assert_eq!(size(7, 7), 1.0);
        assert_eq!(size(i64::MIN, i64::MAX), 1.0);
    }

    #[test]
    fn points_between() {
        assert_eq!(midpoint(-3, 0), -2);
        assert_eq!(midpoint(i64::MAX, i64::MIN + 4), i64::MIN + 2);
        assert_eq!(midpoint(5, 5), i64::MIN + 5);
        assert_eq!(split(0, 1000, 0.25), 250);
        assert_eq!(split(-1000, 0, 0.9), -100);
        assert_eq!(split(i64::MAX, i64::MIN + 100, 0.5), i64::MIN + 50);
        assert_eq!(decimal(0.55), (55, 100));
    }
}
