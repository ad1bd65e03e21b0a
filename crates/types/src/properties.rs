//! Files of `java.util.Properties`.

use std::collections::BTreeMap;

/// Reads the text of such a file: a key and a value a line, comments, escapes, and lines that go on
/// in the next one.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut lines = text.lines().map(str::trim_start);
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while logical.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            logical.pop();
            let Some(next) = lines.next() else { break };
            logical.push_str(next);
        }
        let (key, value) = split_property(&logical);
        values.insert(key, value);
    }
    values
}

/// Key and value: the key ends before the first `=`, `:` or white space that is not escaped.
fn split_property(line: &str) -> (String, String) {
    let mut key = String::new();
    let mut rest = line.chars();
    let mut had_separator = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => key.extend(unescaped(&mut rest)),
            '=' | ':' => {
                had_separator = true;
                break;
            }
            c if c.is_whitespace() => break,
            c => key.push(c),
        }
    }
    let mut rest = rest.as_str().trim_start();
    if !had_separator && let Some(after) = rest.strip_prefix(['=', ':']) {
        rest = after.trim_start();
    }
    let (mut value, mut rest) = (String::new(), rest.chars());
    while let Some(c) = rest.next() {
        match c {
            '\\' => value.extend(unescaped(&mut rest)),
            c => value.push(c),
        }
    }
    (key, value)
}

fn unescaped(rest: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match rest.next()? {
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'f' => '\u{c}',
        'u' => {
            let digits: String = rest.by_ref().take(4).collect();
            char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn as_java_reads_them() {
        let text = "# no=1\n! no\n\n a = 1 \nb:2\nc 3\nd=\\\n   4 \\\n 5\ne\\ f\\=g = \\u0041\\tb\\q\nh\ni\\\\\nk==v";
        let pairs = [
            ("a", "1 "),
            ("b", "2"),
            ("c", "3"),
            ("d", "4 5"),
            ("e f=g", "A\tbq"),
            ("h", ""),
            ("i\\", ""),
            ("k", "=v"),
        ];
        let expected = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(parse(text), expected.into());
    }
}
