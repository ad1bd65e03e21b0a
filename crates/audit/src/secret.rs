//! Passwords are not logged (`cql3.PasswordObfuscator`).

/// What stands for a password.
const CONCEALED: &str = "*******";
/// What a password stands behind.
const TOKEN: &str = "password";

/// Where the word is that a password stands behind, and where it ends.
fn find_token(text: &str) -> Option<(usize, usize)> {
    let is_it = |window: &[u8]| window.eq_ignore_ascii_case(TOKEN.as_bytes());
    let at = text.as_bytes().windows(TOKEN.len()).position(is_it)?;
    Some((at, at + TOKEN.len()))
}

/// Is there a word that a password could stand behind?
pub(crate) fn has_token(text: &str) -> bool {
    find_token(text).is_some()
}

/// The text up to the first password, whatever it is: of statements that were not understood, and
/// of errors.
pub fn conceal_all(text: &str) -> String {
    match find_token(text) {
        Some((_, end)) => format!("{} {CONCEALED}", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The text without this password, wherever it follows the word.
pub fn conceal(text: &str, password: &str) -> String {
    if password.is_empty() {
        return text.to_owned();
    }
    let written = password.replace('\'', "''");
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((_, end)) = find_token(rest) {
        let behind = rest.get(end..).unwrap_or_default();
        // something stands between the word and the password
        let gap = behind.chars().next().map_or(0, char::len_utf8);
        let Some(at) = behind.get(gap..).and_then(|behind| behind.find(&written)) else { break };
        let begin = end + gap + at;
        out.push_str(rest.get(..begin).unwrap_or_default());
        out.push_str(CONCEALED);
        rest = rest.get(begin + written.len()..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_wherever_it_stands() {
        let text = "ALTER ROLE r WITH PassWord = 'a''b' AND LOGIN = true";
        let concealed = "ALTER ROLE r WITH PassWord = '*******' AND LOGIN = true";
        assert_eq!(conceal(text, "a'b"), concealed);
        assert_eq!(conceal("WITH PASSWORD 'password'", "password"), "WITH PASSWORD '*******'");
        let text = "password x, PASSWORD\nx x";
        assert_eq!(conceal(text, "x"), "password *******, PASSWORD\n******* x");
        assert_eq!(conceal("password", "x"), "password");
        assert_eq!(conceal("\u{6771} password\u{4eac}", "\u{4eac}"), "\u{6771} password\u{4eac}");
        assert_eq!(conceal("a password 'b'", ""), "a password 'b'");
    }

    #[test]
    fn of_what_was_not_understood_the_rest_goes() {
        assert_eq!(conceal_all("CREATE ROLE r WITH PASSWORD = 'x"), {
            "CREATE ROLE r WITH PASSWORD *******"
        });
        assert_eq!(conceal_all("SELECT \u{e9}"), "SELECT \u{e9}");
    }
}
