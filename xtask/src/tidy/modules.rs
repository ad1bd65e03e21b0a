//! The files of a crate as modules, and which names which.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{self, Named};
use super::tree::Tree;

/// Names that a file imports or re-exports: the path of each.
type Imports = BTreeMap<String, Named>;

/// The modules of a crate that are files, by their paths (`a::b`; the root has none).
pub struct Modules {
    /// The modules that each one names.
    pub names: BTreeMap<String, BTreeSet<String>>,
}

impl Modules {
    /// Of a crate's product: what its tests name does not count.
    pub fn of(tree: &Tree, folder: &str) -> Self {
        let files: BTreeMap<String, &str> = tree
            .product_of(folder)
            .map(|(name, source)| (module_of(folder, name), source.product.as_str()))
            .collect();
        // a file that passes through the root's re-exports names what lies behind them
        let root = files.get("").map_or_else(Imports::new, |code| root_imports(code));
        let mut names = BTreeMap::new();
        for (module, code) in &files {
            let named = paths::named(code).into_iter().filter_map(|place| {
                let mut base = parts(module);
                base.extend(place.within);
                let path = absolute(&base, &place.path)?;
                Some(file_of(&files, &root, path))
            });
            let others = named.filter(|other| other != module).collect();
            names.insert(module.clone(), others);
        }
        Self { names }
    }
}

/// What the root's `use`s take from the crate itself.
fn root_imports(code: &str) -> Imports {
    let imports = paths::imports(code).into_iter().map(|import| {
        let is_marked = matches!(import.path[0].as_str(), "crate" | "self");
        let path = if is_marked { import.path[1..].to_vec() } else { import.path };
        (import.name, path)
    });
    imports.collect()
}

/// A file's module: `src/a/mod.rs` is `a`, `src/lib.rs` the root.
fn module_of(folder: &str, name: &str) -> String {
    let path = name[folder.len() + "/src/".len()..].trim_end_matches(".rs");
    let module = path.replace('/', "::");
    match module.as_str() {
        "lib" | "main" => String::new(),
        _ => module.strip_suffix("::mod").unwrap_or(&module).to_owned(),
    }
}

fn parts(module: &str) -> Named {
    module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A path from the crate's root on.
fn absolute(base: &[String], path: &[String]) -> Option<Named> {
    let (mut at, rest) = match path.first()?.as_str() {
        "crate" => (Named::new(), &path[1..]),
        "self" => (base.to_vec(), &path[1..]),
        _ => (base.to_vec(), path),
    };
    let ups = rest.iter().take_while(|part| *part == "super").count();
    at.truncate(at.len().checked_sub(ups)?);
    at.extend_from_slice(&rest[ups..]);
    Some(at)
}

/// The file whose module a path leads into.
fn file_of(files: &BTreeMap<String, &str>, root: &Imports, path: Named) -> String {
    let longest = |path: &[String]| {
        let lengths = (0..=path.len()).rev();
        lengths.map(|length| path[..length].join("::")).find(|module| files.contains_key(module))
    };
    let found = longest(&path).unwrap_or_default();
    match path.first().and_then(|name| root.get(name)) {
        Some(behind) if found.is_empty() => longest(behind).unwrap_or_default(),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::Modules;
    use crate::tidy::tree::Tree;

    fn named_by(module: &str, code: &str) -> Vec<String> {
        let file = format!("a/src/{}.rs", module.replace("::", "/"));
        let tree = Tree::of(&[
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "mod b;\nmod c;\npub use b::{d::D, B as E};\n"),
            ("a/src/b/mod.rs", "mod d;\n"),
            ("a/src/b/d.rs", ""),
            ("a/src/b/f.rs", ""),
            ("a/src/c.rs", ""),
            (&file, code),
        ]);
        let mut modules = Modules::of(&tree, "a");
        modules.names.remove(module).into_iter().flatten().collect()
    }

    #[test]
    fn knows_which_file_a_path_leads_into() {
        assert_eq!(named_by("c", "use crate::b::d::D;"), ["b::d"]);
        assert_eq!(named_by("c", "use crate::b::B;"), ["b"]);
        assert_eq!(named_by("b::f", "use super::d;"), ["b::d"]);
        assert_eq!(named_by("b::f", "fn f() { super::super::c::c() }"), ["c"]);
        assert_eq!(named_by("b::f", "mod g { use super::super::d::D; }"), ["b::d"]);
    }

    #[test]
    fn looks_behind_the_re_exports_of_the_root() {
        assert_eq!(named_by("c", "use crate::D;"), ["b::d"]);
        assert_eq!(named_by("c", "use crate::E;"), ["b"]);
        assert_eq!(named_by("c", "use crate::Other;"), [""]);
    }

    #[test]
    fn passes_over_what_is_for_tests() {
        assert!(named_by("c", "#[cfg(test)]\nmod tests { use crate::b::B; }").is_empty());
    }
}
