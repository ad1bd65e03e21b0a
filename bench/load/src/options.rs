//! The words of a command: first those without a name, then options (`--name`), each with all words
//! up to the next.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use crate::Outcome;

pub struct Options {
    /// The words before any option.
    pub plain: Vec<String>,
    named: BTreeMap<String, Vec<String>>,
}

impl Options {
    /// An option that is none of those known is an error.
    pub fn parse(words: &[String], known: &[&str]) -> Outcome<Self> {
        let mut options = Self { plain: Vec::new(), named: BTreeMap::new() };
        let mut last = None;
        for word in words {
            if let Some(name) = word.strip_prefix("--") {
                if !known.contains(&name) {
                    return Err(format!("no option --{name}").into());
                }
                options.named.insert(name.to_owned(), Vec::new());
                last = Some(name);
                continue;
            }
            let values = last.and_then(|name| options.named.get_mut(name));
            values.unwrap_or(&mut options.plain).push(word.clone());
        }
        Ok(options)
    }

    /// Is it among them?
    pub fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    /// All words of an option.
    pub fn all(&self, name: &str) -> &[String] {
        self.named.get(name).map_or(&[], Vec::as_slice)
    }

    /// The one word of an option, as what it means.
    pub fn one<T: FromStr>(&self, name: &str, default: T) -> Outcome<T>
    where
        T::Err: Display,
    {
        match (self.has(name), self.all(name)) {
            (false, _) => Ok(default),
            (true, [word]) => word.parse().map_err(|e| format!("--{name} {word}: {e}").into()),
            (true, words) => Err(format!("--{name} wants one word, not {}", words.len()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(text: &str) -> super::Outcome<Options> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Options::parse(&words, &["rows", "through", "keep"])
    }

    #[test]
    fn options_follow_what_has_no_name() {
        let options = parse("- a b --rows 7 --through c d --keep").expect("all known");
        assert_eq!(options.plain, ["-", "a", "b"]);
        assert_eq!(options.one("rows", 1).expect("a number"), 7);
        assert_eq!(options.all("through"), ["c", "d"]);
        assert!(options.has("keep"));
    }

    #[test]
    fn what_is_not_said_is_as_by_default() {
        let options = parse("a").expect("no option");
        assert_eq!(options.one("rows", 1).expect("the default"), 1);
        assert!(!options.has("keep"));
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        assert!(parse("a --raws 7").is_err());
        assert!(parse("a --rows x").expect("known").one("rows", 1).is_err());
        assert!(parse("a --rows").expect("known").one("rows", 1).is_err());
        assert!(parse("a --rows 1 2").expect("known").one("rows", 1).is_err());
    }
}
