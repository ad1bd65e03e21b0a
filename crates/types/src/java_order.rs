//! The orders that names beyond ASCII have in Java, wherever Cassandra sorts by them.

use std::cmp::Ordering;

/// `String.compareTo`: by units of UTF-16, so that U+E000 to U+FFFF come behind all that takes two of them.
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

/// In upper case and back. A character that is several in the other case stays: Java's characters become one.
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

    fn sorted<'n>(mut names: Vec<&'n str>, order: impl Fn(&str, &str) -> Ordering) -> Vec<&'n str> {
        names.sort_by(|a, b| order(a, b));
        names
    }

    #[test]
    fn strings_are_compared_by_units_of_utf_16() {
        let names = vec!["ﬁ", "z", "😀", "é", "列", "Z"];
        assert_eq!(sorted(names, strings), ["Z", "z", "é", "列", "😀", "ﬁ"]);
    }

    #[test]
    fn case_is_left_out_one_character_at_a_time() {
        let names = vec!["😀", "ﬁ", "É", "z", "éa", "FJ", "Ω", "ß", "ω"];
        let wanted = ["FJ", "z", "ß", "É", "éa", "Ω", "ω", "ﬁ", "😀"];
        assert_eq!(sorted(names, strings_without_case), wanted);
    }

    #[test]
    fn bytes_of_buffers_have_a_sign() {
        let by_bytes = |a: &str, b: &str| buffers(a.as_bytes(), b.as_bytes());
        let names = vec!["az", "a", "aé", "é", "", "z", "列", "😀"];
        assert_eq!(sorted(names, by_bytes), ["", "é", "列", "😀", "a", "aé", "az", "z"]);
    }
}
