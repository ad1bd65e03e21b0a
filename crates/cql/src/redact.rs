//! Statements without the passwords or the values in them: for logs, traces, tables and errors.

use std::borrow::Cow;

use crate::lexer::{Kind, lex};

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

/// A text with a `?` in place of each literal, and nothing after what cannot be read.
pub fn without_values(text: &str) -> String {
    let (tokens, _) = lex(text);
    let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
    for token in tokens {
        let is_value = match token.kind {
            Kind::String
            | Kind::Integer
            | Kind::Float
            | Kind::Boolean
            | Kind::Duration
            | Kind::Uuid
            | Kind::Hex
            | Kind::NegativeNan
            | Kind::NegativeInfinity => true,
            Kind::End => {
                shown.push_str(text.get(from..token.start as usize).unwrap_or_default());
                break;
            }
            _ => false,
        };
        if is_value {
            shown.push_str(text.get(from..token.start as usize).unwrap_or_default());
            shown.push('?');
            from = token.end as usize;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{redacted, without_values};

    #[test]
    fn no_value_is_shown() {
        let text = "SELECT \"\u{e9}\", b FROM ks.t WHERE k = 'it''s' \
                    AND c IN (1, -2.5e3, 0xab, $$x$$) \
                    AND d = 2h3m AND u = 123e4567-e89b-12d3-a456-426614174000 AND t = true \
                    AND m['\u{e9}'] = ? LIMIT 10";
        assert_eq!(
            without_values(text),
            "SELECT \"\u{e9}\", b FROM ks.t WHERE k = ? AND c IN (?, ?, ?, ?) AND d = ? AND u = ? \
             AND t = ? AND m[?] = ? LIMIT ?"
        );
        // what cannot be read may be a value
        assert_eq!(
            without_values("SELECT * FROM t WHERE k = 'secret"),
            "SELECT * FROM t WHERE k = "
        );
        assert_eq!(without_values(""), "");
    }

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
