//! What of a Rust file is code: comments and the insides of literals are blanked, so that no rule
//! takes a word in a text for one in the program.
//!
//! A scanner and no parser: it knows where comments, strings and characters end, and braces match.

/// A file's code, byte for byte as long as its text, and the same without what is for tests.
pub struct Source {
    /// Comments and the insides of strings and characters are spaces.
    pub code: String,
    /// So are items under `#[cfg(test)]`.
    pub product: String,
}

impl Source {
    pub fn new(text: &str) -> Self {
        let code = without_texts(text);
        let product = without_tests(&code);
        Self { code, product }
    }

    /// Lines up to the tests at the end of the file.
    pub fn product_lines(&self) -> usize {
        let mut tests = self.code.match_indices("\n#[cfg(test)]\nmod ").map(|(at, _)| at + 1);
        let end = tests.find(|at| self.product[*at..].trim().is_empty());
        self.code[..end.unwrap_or(self.code.len())].lines().count()
    }
}

/// The number of the line that a byte is in.
pub fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// Where the bracket that opens at `at` is closed.
pub fn closing(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where a word stands that is not a part of a longer one.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let starts = word.bytes().next().is_some_and(is_word);
    let ends = word.bytes().next_back().is_some_and(is_word);
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        let after = bytes.get(at + word.len());
        let goes_on = |byte: Option<&u8>| byte.is_some_and(|byte| is_word(*byte));
        !(starts && goes_on(before) || ends && goes_on(after))
    })
}

/// Blanks comments and the insides of literals.
fn without_texts(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let in_word = at > 0 && is_word(bytes[at - 1]);
        let end = if rest.starts_with(b"//") {
            let end = at + line_end(rest);
            blank(&mut out[at..end]);
            end
        } else if rest.starts_with(b"/*") {
            let end = at + comment_end(rest);
            blank(&mut out[at..end]);
            end
        } else if rest[0] == b'"' {
            let end = at + string_end(rest);
            blank(&mut out[at + 1..end.saturating_sub(1).max(at + 1)]);
            end
        } else if rest[0] == b'r' && is_raw(rest) && (!in_word || is_prefix(bytes, at)) {
            let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
            let open = at + 1 + hashes;
            let end = open + raw_end(&bytes[open..], hashes);
            blank(&mut out[open + 1..end.saturating_sub(1 + hashes).max(open + 1)]);
            end
        } else if rest[0] == b'\'' {
            let end = at + character_end(rest);
            blank(&mut out[at + 1..end.saturating_sub(1).max(at + 1)]);
            end
        } else {
            at + 1
        };
        at = end.max(at + 1);
    }
    // blanks take the place of whole characters only, or the text was no Rust
    String::from_utf8(out).unwrap_or_default()
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn line_end(rest: &[u8]) -> usize {
    rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
}

/// Comments in `/*` nest.
fn comment_end(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Behind the quote that ends a string.
fn string_end(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Behind the quote and the `#`s that end a raw string: a backslash is none of its concern.
fn raw_end(rest: &[u8], hashes: usize) -> usize {
    let is_end = |at: usize| {
        let end = &rest[at..(at + 1 + hashes).min(rest.len())];
        end.len() == 1 + hashes && end[0] == b'"' && end[1..].iter().all(|b| *b == b'#')
    };
    (1..rest.len()).find(|at| is_end(*at)).map_or(rest.len(), |at| at + 1 + hashes)
}

fn is_raw(rest: &[u8]) -> bool {
    let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
    rest.get(1 + hashes) == Some(&b'"')
}

/// Is the `r` the second letter of `br` or `cr`?
fn is_prefix(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at - 1], b'b' | b'c') && (at < 2 || !is_word(bytes[at - 2]))
}

/// Behind a character's second quote; of a lifetime, behind its first.
fn character_end(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        // of '\'' and '\\' the third one is no end
        return rest.iter().skip(3).position(|b| *b == b'\'').map_or(1, |at| at + 4);
    }
    if rest.get(2) == Some(&b'\'') { 3 } else { 1 }
}

/// Blanks items under `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    const TESTS: &str = "#[cfg(test)]";
    let mut out = code.as_bytes().to_vec();
    for (at, _) in code.match_indices(TESTS) {
        let end = item_end(code, at + TESTS.len());
        blank(&mut out[at..end]);
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Where an item ends: behind its `;`, or the brace that closes its body.
fn item_end(code: &str, from: usize) -> usize {
    let is_use = code[from..].trim_start().trim_start_matches("pub ").starts_with("use ");
    let mut at = from;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b';' => return at + 1,
            b'{' | b'(' | b'[' => {
                let Some(end) = closing(code, at) else { return code.len() };
                if *byte == b'{' && !is_use {
                    return end + 1;
                }
                at = end + 1;
            }
            // a field of a struct that ends here
            b'}' => return at,
            _ => at += 1,
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::{Source, closing, words};

    #[test]
    fn blanks_comments_and_literals() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("f(\"}\\\"}\") }", "f(\"    \") }"),
            ("f(r\"\\\") }", "f(r\" \") }"),
            ("f(r#\"}\"}\"#) }", "f(r#\"   \"#) }"),
            ("f(br#\"}\"#) }", "f(br#\" \"#) }"),
            ("f('}', '\\'', '\\\\') }", "f(' ', '  ', '  ') }"),
            ("fn a<'a>(b: &'a str) {}", "fn a<'a>(b: &'a str) {}"),
        ] {
            assert_eq!(Source::new(text).code, code, "{text}");
        }
    }

    #[test]
    fn blanks_what_is_for_tests() {
        let text = "use a;\n#[cfg(test)]\nuse b::{c, d};\nfn e() {}\n#[cfg(test)]\nmod tests {\n    \
                    fn f() {}\n}\n";
        let source = Source::new(text);
        assert!(source.product.contains("fn e()") && source.product.contains("use a;"));
        assert!(!source.product.contains('c') && !source.product.contains("fn f"));
        assert_eq!(source.product_lines(), 4);
        assert_eq!(Source::new("#[cfg(test)]\nmod a {}\nfn b() {}\n").product_lines(), 3);
    }

    #[test]
    fn finds_words_and_the_ends_of_brackets() {
        assert_eq!(words("assert! debug_assert! asserts", "assert").collect::<Vec<_>>(), [0]);
        assert_eq!(closing("a { b ( c ) } d", 2), Some(12));
        assert_eq!(closing("a { b", 2), None);
    }
}
