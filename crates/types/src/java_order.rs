//! The orders that names beyond ASCII have in Java, wherever Cassandra sorts by them.

use std::cmp::Ordering;

/// `String.compareTo`: by units of UTF-16, so that U+E000 to U+FFFF come behind all that takes two
/// of them.
pub fn strings(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// `String.compareToIgnoreCase` of Java 17: by code points, each in lower case.
pub fn strings_without_case(a: &str, b: &str) -> Ordering {
    a.chars().map(without_case).cmp(b.chars().map(without_case))
}

/// `ByteBuffer.compareTo`: bytes have a sign, so that those beyond ASCII come first.
pub fn buffers(a: &[u8], b: &[u8]) -> Ordering {
    let signed = |byte: &u8| byte.cast_signed();
    a.iter().map(signed).cmp(b.iter().map(signed))
}

/// In upper case and back. A character that is several in the other case stays: Java's characters
/// become one.
fn without_case(c: char) -> char {
    let upper = only(c.to_uppercase()).unwrap_or(c);
    only(upper.to_lowercase()).unwrap_or(upper)
}

fn only(mut mapped: impl Iterator<Item = char>) -> Option<char> {
    mapped.next().filter(|_| mapped.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut names: Vec<&str>, order: impl Fn(&str, &str) -> Ordering) -> Vec<&str> {
        names.sort_by(|a, b| order(a, b));
        names
    }

    #[test]
    fn strings_are_compared_by_units_of_utf_16() {
        let names = vec!["\u{fb01}", "z", "\u{1f600}", "\u{e9}", "\u{5217}", "Z"];
        assert_eq!(
            sorted(names, strings),
            ["Z", "z", "\u{e9}", "\u{5217}", "\u{1f600}", "\u{fb01}"]
        );
    }

    #[test]
    fn case_is_left_out_one_character_at_a_time() {
        let names = vec![
            "\u{1f600}",
            "\u{fb01}",
            "\u{c9}",
            "z",
            "\u{e9}a",
            "FJ",
            "\u{3a9}",
            "\u{df}",
            "\u{3c9}",
        ];
        let wanted = [
            "FJ",
            "z",
            "\u{df}",
            "\u{c9}",
            "\u{e9}a",
            "\u{3a9}",
            "\u{3c9}",
            "\u{fb01}",
            "\u{1f600}",
        ];
        assert_eq!(sorted(names, strings_without_case), wanted);
    }

    #[test]
    fn bytes_of_buffers_have_a_sign() {
        let by_bytes = |a: &str, b: &str| buffers(a.as_bytes(), b.as_bytes());
        let names = vec!["az", "a", "a\u{e9}", "\u{e9}", "", "z", "\u{5217}", "\u{1f600}"];
        assert_eq!(
            sorted(names, by_bytes),
            ["", "\u{e9}", "\u{5217}", "\u{1f600}", "a", "a\u{e9}", "az", "z"]
        );
    }
}
