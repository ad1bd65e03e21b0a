//! Whom nodetool logs in as: `-u`, `-pw` and `-pwf`, as Cassandra's nodetool reads them.

use std::io::{self, IsTerminal};
use std::path::Path;

use admin::wire::Login;

/// Bytes of a password file that are worth reading.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the command line says of a login.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// `-u`.
    pub user: Option<&'a str>,
    /// `-pw`.
    pub password: Option<&'a str>,
    /// `-pwf`.
    pub file: Option<&'a Path>,
}

/// The login of a command line; none without a user. The password is that of the file, if one is
/// named; one that is empty is asked for at the terminal, if there is one.
pub fn login(given: Given<'_>) -> io::Result<Option<Login>> {
    let Some(user) = given.user.filter(|user| !user.is_empty()) else { return Ok(None) };
    let mut password = given.password.unwrap_or_default().to_owned();
    if let Some(file) = given.file {
        password = in_file(user, &read(file)?).unwrap_or_default();
    }
    if password.is_empty() && io::stdin().is_terminal() && io::stdout().is_terminal() {
        password = rpassword::prompt_password("Password:")?;
    }
    Ok(Some(Login { user: user.to_owned(), password }))
}

fn read(file: &Path) -> io::Result<String> {
    use std::io::Read;
    let named =
        |why: &dyn std::fmt::Display| io::Error::other(format!("{} ({why})", file.display()));
    #[expect(clippy::disallowed_types, reason = "a program of its own, without crate env")]
    let opened = std::fs::File::open(file);
    let opened = opened.map_err(|e| named(&words_of(&e)))?;
    let mut text = String::new();
    let read = opened.take(FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|e| named(&words_of(&e)))?;
    Ok(text)
}

/// The system's words for an error, without its number.
pub fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The password of a role in a file of lines `role password`.
fn in_file(user: &str, text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(user)).then(|| words.next().map(str::to_owned)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_file_has_a_role_a_line() {
        let text = "monitorRole QED\n\n  ada\tsecret  readwrite\r\nbob\nada other\n";
        assert_eq!(in_file("ada", text).as_deref(), Some("secret"));
        assert_eq!(in_file("monitorRole", text).as_deref(), Some("QED"));
        assert_eq!(in_file("bob", text), None);
        assert_eq!(in_file("QED", text), None);
    }

    #[test]
    fn who_names_no_user_does_not_log_in() {
        let given = Given { user: None, password: Some("p"), file: None };
        assert_eq!(login(given).unwrap(), None);
        let given = Given { user: Some("u"), password: Some("p"), ..given };
        let login = login(given).unwrap().unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), ("u", "p"));
    }
}
