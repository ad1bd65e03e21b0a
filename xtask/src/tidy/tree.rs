//! The files of the tree that are text of ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::source::Source;
use crate::machine::Outcome;

/// File types that are text of ours.
const TEXT: &[&str] =
    &["rs", "toml", "md", "py", "java", "go", "js", "cql", "xml", "sh", "json", "yaml", "yml"];
/// What programs wrote and tests compare with.
const WRITTEN_BY_PROGRAMS: [&str; 2] = ["conformance/golden/", "bench/results/"];

/// The text of each file by its path from the root, and of Rust files what of it is code.
pub struct Tree {
    texts: BTreeMap<String, String>,
    sources: BTreeMap<String, Source>,
    /// All files that git knows, those that are not text of ours too.
    pub names: Vec<String>,
}

impl Tree {
    /// Reads every file that git tracks or would track.
    pub fn read(root: &Path) -> Outcome<Self> {
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()?;
        let mut texts = BTreeMap::new();
        let mut names = Vec::new();
        for name in String::from_utf8(listed.stdout)?.lines() {
            // git lists a file that was removed until the removal is staged
            if !root.join(name).exists() {
                continue;
            }
            names.push(name.to_owned());
            let written = WRITTEN_BY_PROGRAMS.iter().any(|folder| name.starts_with(folder));
            if !TEXT.contains(&extension(name)) || written {
                continue;
            }
            if let Ok(text) = std::fs::read_to_string(root.join(name)) {
                texts.insert(name.to_owned(), text);
            }
        }
        Ok(Self::new(texts, names))
    }

    /// A tree that a test makes up.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let texts = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let names = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self::new(texts.collect(), names)
    }

    fn new(texts: BTreeMap<String, String>, names: Vec<String>) -> Self {
        let rust = texts.iter().filter(|(name, _)| extension(name) == "rs");
        let sources = rust.map(|(name, text)| (name.clone(), Source::new(text))).collect();
        Self { texts, sources, names }
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// Files of Rust.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(name, source)| (name.as_str(), source))
    }

    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.get(name)
    }

    /// Folders with a manifest and a folder `src` beside it.
    pub fn crates(&self) -> Vec<&str> {
        let folders = self.texts.keys().filter_map(|name| name.strip_suffix("/Cargo.toml"));
        let has_sources = |folder: &&str| {
            let sources = format!("{folder}/src/");
            self.sources.keys().any(|name| name.starts_with(&sources))
        };
        folders.filter(has_sources).collect()
    }

    /// The files of a crate that are of its product: none that is for tests alone.
    pub fn product_of(&self, folder: &str) -> impl Iterator<Item = (&str, &Source)> {
        let sources = format!("{folder}/src/");
        self.sources().filter(move |(name, _)| name.starts_with(&sources) && !is_test(name))
    }
}

/// Is a file of Rust for tests alone, by its place?
pub fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.split('/').any(|part| part == "tests")
}

/// The folder that a count is kept for: of a crate, else the first one.
pub fn folder_of(name: &str) -> String {
    let mut parts = name.split('/');
    let first = parts.next().unwrap_or_default();
    match (first, parts.next()) {
        ("crates" | "bin" | "bench" | "conformance", Some(second)) => format!("{first}/{second}"),
        _ => first.to_owned(),
    }
}

pub fn extension(name: &str) -> &str {
    Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Tree, folder_of, is_test};

    #[test]
    fn tells_the_product_from_its_tests() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/tests/c.rs", ""),
            ("crates/a/tests/all.rs", ""),
            ("conformance/Cargo.toml", ""),
        ]);
        assert_eq!(tree.crates(), ["crates/a"]);
        let product: Vec<_> = tree.product_of("crates/a").map(|(name, _)| name).collect();
        assert_eq!(product, ["crates/a/src/lib.rs"]);
        assert!(is_test("crates/a/tests/all.rs"));
        assert!(!is_test("crates/a/src/attests.rs"));
    }

    #[test]
    fn keeps_counts_by_crate() {
        assert_eq!(folder_of("crates/a/src/lib.rs"), "crates/a");
        assert_eq!(folder_of("xtask/src/main.rs"), "xtask");
    }
}
