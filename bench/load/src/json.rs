//! Texts as JSON.

/// A text as JSON.
pub fn text(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// Texts as a JSON array.
pub fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|each| text(each)).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_text_is_escaped() {
        assert_eq!(text("a \"b\" \\ c\n"), "\"a \\\"b\\\" \\\\ c\\u000a\"");
    }
}
