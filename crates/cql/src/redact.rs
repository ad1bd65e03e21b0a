//! Statements without the passwords in them: for logs, traces, tables and errors.

use std::borrow::Cow;

/// What stands in place of a secret (`PasswordObfuscator.OBFUSCATION_TOKEN`).
pub const REDACTED: &str = "*******";
const PASSWORD: &[u8] = b"password";

/// A text as it may be shown: nothing that follows the first `password` in it
/// (`PasswordObfuscator.obfuscate`).
pub fn redacted(text: &str) -> Cow<'_, str> {
    let found = text.as_bytes().windows(PASSWORD.len());
    let mut found = found.enumerate().filter(|(_, word)| word.eq_ignore_ascii_case(PASSWORD));
    match found.next().and_then(|(at, _)| text.get(..at + PASSWORD.len())) {
        Some(before) => Cow::Owned(format!("{before} {REDACTED}")),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn nothing_after_the_word_is_shown() {
        assert_eq!(redacted("SELECT * FROM t"), "SELECT * FROM t");
        assert_eq!(
            redacted("CREATE ROLE r WITH PassWord = 'x' AND LOGIN = true"),
            "CREATE ROLE r WITH PassWord *******"
        );
        assert_eq!(
            redacted("ALTER USER \u{e9} WITH PASSWORD 'x'"),
            "ALTER USER \u{e9} WITH PASSWORD *******"
        );
    }
}
