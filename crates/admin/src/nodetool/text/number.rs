//! Numbers as Java's formatters write them.

use types::float::format_double;

/// Sizes of units, the largest first.
const UNITS: [(f64, &str); 4] =
    [(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB")];

/// `FileUtils.stringifyFileSize`: `6.68 KiB`, `0 bytes`.
pub(super) fn file_size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{} {name}", short(bytes / unit)),
        None => format!("{} bytes", short(bytes)),
    }
}

/// `DecimalFormat("#.##")`: at most two decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size for an operator: with a unit, or plain.
pub(super) fn size(bytes: u64, human_readable: bool) -> String {
    if human_readable { file_size(bytes) } else { bytes.to_string() }
}

/// `FBUtilities.prettyPrintMemory`: `6.678KiB`, `0B`.
pub(super) fn memory(bytes: u64) -> String {
    const PREFIXES: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    let tens = bytes.checked_ilog2().unwrap_or(0) / 10;
    match PREFIXES.get(tens as usize) {
        Some(prefix) if tens > 0 => {
            let value = bytes as f64 / (1u64 << (10 * tens)) as f64;
            format!("{}{prefix}iB", fixed(value, 3))
        }
        _ => format!("{bytes}B"),
    }
}

/// `%.Nf` of `java.util.Formatter`: the shortest decimal of the double, rounded half up.
pub(super) fn fixed(value: f64, places: usize) -> String {
    if !value.is_finite() {
        return format_double(value);
    }
    // Display prints the shortest digits that mean the value, without an exponent.
    let text = value.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let Some((kept, [next, ..])) = fraction.as_bytes().split_at_checked(places) else {
        return format!("{value:.places$}");
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let mut digits: Vec<u8> =
        whole.trim_start_matches('-').bytes().chain(kept.iter().copied()).collect();
    if *next >= b'5' {
        round_up(&mut digits);
    }
    let point = digits.len().saturating_sub(places);
    let (whole, fraction) = digits.split_at_checked(point).unwrap_or((&digits, &[]));
    let text = |digits: &[u8]| String::from_utf8_lossy(digits).into_owned();
    let point = if places == 0 { "" } else { "." };
    format!("{sign}{}{point}{}", text(whole), text(fraction))
}

/// Adds one to the last of decimal digits.
fn round_up(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

/// `Double.toString`.
pub(super) fn double(value: f64) -> String {
    format_double(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of nodetool 5.0.9 where it showed them.
    #[test]
    fn sizes_have_units() {
        let texts = [0, 640, 6838, 39_845_888, 1023, 1024, 1 << 40, (1 << 50) + (1 << 49)];
        assert_eq!(
            texts.map(file_size),
            [
                "0 bytes",
                "640 bytes",
                "6.68 KiB",
                "38 MiB",
                "1023 bytes",
                "1 KiB",
                "1 TiB",
                "1536 TiB"
            ]
        );
        assert_eq!(
            [0, 695, 6838, 1024, u64::MAX].map(memory),
            ["0B", "695B", "6.678KiB", "1.000KiB", "16.000EiB"]
        );
    }

    #[test]
    fn decimals_are_rounded_half_up() {
        assert_eq!(fixed(0.125, 2), "0.13");
        assert_eq!(fixed(0.375, 2), "0.38");
        assert_eq!(fixed(2.675, 2), "2.68", "by its shortest digits");
        assert_eq!(fixed(9.999, 2), "10.00");
        assert_eq!(fixed(0.95108, 5), "0.95108");
        assert_eq!(fixed(-1.0, 5), "-1.00000");
        assert_eq!(fixed(-0.126, 2), "-0.13");
        assert_eq!(fixed(0.0, 3), "0.000");
        assert_eq!(fixed(2.5, 0), "3");
        assert_eq!(fixed(f64::NAN, 3), "NaN");
        assert_eq!(fixed(1e21, 1), "1000000000000000000000.0");
    }

    proptest::proptest! {
        #[test]
        fn decimals_are_near(value in -1e12f64..1e12, places in 0usize..6) {
            let text = fixed(value, places);
            let back: f64 = text.parse().unwrap();
            proptest::prop_assert!((back - value).abs() <= 0.500001 / 10f64.powi(places as i32) + 1e-3);
            proptest::prop_assert_eq!(text.split_once('.').map_or(0, |(_, f)| f.len()), places);
        }
    }
}
