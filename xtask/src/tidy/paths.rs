//! The paths within a crate that a file of Rust names: in `use`, and where it stands.

use super::source::{closing, is_word, words};

/// What a file names, as parts: `crate`, `self`, `super` or a module's name first.
pub type Named = Vec<String>;

/// What a `use` takes: a path, and the name that it has from then on.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    pub path: Named,
    pub name: String,
}

/// A path in a file, and the modules written out in that file around it.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    pub within: Named,
    pub path: Named,
}

/// All paths that begin with `crate`, `self` or `super`, in `use` or not.
pub fn named(code: &str) -> Vec<Place> {
    let bodies = modules(code);
    let place = |at: usize, path: Named| {
        let around = bodies.iter().filter(|(_, from, to)| (*from..*to).contains(&at));
        Place { within: around.map(|(name, ..)| name.clone()).collect(), path }
    };
    let mut places = Vec::new();
    let mut in_use = Vec::new();
    for (at, tree) in uses(code) {
        in_use.push(at..at + "use".len() + tree.len());
        places.extend(leaves(tree).into_iter().map(|import| place(at, import.path)));
    }
    for first in ["crate", "super", "self"] {
        for at in words(code, first) {
            let path = path_at(code, at);
            let is_read = in_use.iter().any(|range| range.contains(&at));
            // `pub(crate)`, `self` as a value
            let is_word = path.len() < 2;
            let is_middle = code[..at].ends_with("::");
            if !is_read && !is_word && !is_middle {
                places.push(place(at, path));
            }
        }
    }
    places.retain(|place| matches!(place.path[0].as_str(), "crate" | "super" | "self"));
    places
}

/// What a file's `use`s take, outside the modules that are written out in it.
pub fn imports(code: &str) -> Vec<Import> {
    let bodies = modules(code);
    let is_outside = |at: usize| !bodies.iter().any(|(_, from, to)| (*from..*to).contains(&at));
    uses(code).filter(|(at, _)| is_outside(*at)).flat_map(|(_, tree)| leaves(tree)).collect()
}

/// Where each `use` is, and what stands between it and its `;`.
fn uses(code: &str) -> impl Iterator<Item = (usize, &str)> {
    words(code, "use").filter_map(|at| {
        let tree = code[at + 3..].split_once(';')?.0;
        // `impl Trait + use<'a>` takes nothing
        (!tree.trim_start().starts_with('<')).then_some((at, tree))
    })
}

/// Modules that are written out in a file: name, and where their bodies begin and end.
fn modules(code: &str) -> Vec<(String, usize, usize)> {
    let body = |at: usize| {
        let rest = &code[at + "mod".len()..];
        let is_of_name = |c: char| u8::try_from(c).is_ok_and(is_word);
        let name = rest.trim_start().split(|c| !is_of_name(c)).next().unwrap_or_default();
        let open = at + "mod".len() + rest.find(['{', ';'])?;
        let is_body = code[open..].starts_with('{') && !name.is_empty();
        let end = if is_body { closing(code, open)? } else { return None };
        Some((name.to_owned(), open, end))
    };
    words(code, "mod").filter_map(body).collect()
}

/// The paths of a tree of `use`.
fn leaves(tree: &str) -> Vec<Import> {
    let tree = tree.trim();
    if let Some((before, rest)) = tree.split_once('{') {
        let inner = rest.strip_suffix('}').unwrap_or(rest);
        let before = parts(before);
        let mut found: Vec<Import> = branches(inner).into_iter().flat_map(leaves).collect();
        for import in &mut found {
            // `a::{self}` takes `a`
            if import.path == ["self"] && !before.is_empty() {
                import.path.clear();
                import.name = import.name.replace("self", before.last().map_or("", |b| b));
            }
            import.path.splice(0..0, before.iter().cloned());
        }
        return found;
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(p, n)| (p, Some(n)));
    let path = parts(path);
    let last = path.last().cloned().unwrap_or_default();
    vec![Import { path, name: name.map_or(last, |n| n.trim().to_owned()) }]
}

/// The parts between commas, but for those within braces.
fn branches(inner: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_comma = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    inner.split(is_comma).map(str::trim).filter(|branch| !branch.is_empty()).collect()
}

fn parts(path: &str) -> Named {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The path that begins at a place.
fn path_at(code: &str, at: usize) -> Named {
    let is_of_path = |c: char| c == ':' || u8::try_from(c).is_ok_and(is_word);
    let path: String = code[at..].chars().take_while(|c| is_of_path(*c)).collect();
    // `self: &Self`, `crate::{`
    parts(path.trim_end_matches(':'))
}

#[cfg(test)]
mod tests {
    use super::{imports, named};

    fn paths(code: &str) -> Vec<String> {
        let show = |place: super::Place| {
            let within = place.within.iter().map(|m| format!("{m}/"));
            within.collect::<String>() + &place.path.join("::")
        };
        let mut paths: Vec<_> = named(code).into_iter().map(show).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    #[test]
    fn reads_uses() {
        assert_eq!(
            paths("use std::a;\nuse crate::a::{self, B, c::{D, E as F}};\npub use super::g::*;"),
            ["crate::a", "crate::a::B", "crate::a::c::D", "crate::a::c::E", "super::g::*"]
        );
    }

    #[test]
    fn reads_paths_where_they_stand() {
        assert_eq!(
            paths("pub(crate) fn a(self: &Self) { crate::b::c(self.d); super::super::e::f(); }"),
            ["crate::b::c", "super::super::e::f"]
        );
        assert_eq!(paths("mod a { use super::b; }\nuse super::c;"), ["a/super::b", "super::c"]);
    }

    #[test]
    fn knows_the_names_that_a_use_gives() {
        let names = |code| imports(code).into_iter().map(|i| i.name).collect::<Vec<_>>();
        assert_eq!(names("use a::{self, B as C};\nmod d { use e::F; }\nuse g;"), ["a", "C", "g"]);
    }
}
