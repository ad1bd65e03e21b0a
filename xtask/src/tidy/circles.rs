//! No circles of files within a crate: a file that names another is not named by it, directly or by
//! way of others.
//!
//! A parent and its own child modules may name each other: the folder is one thing. The root may
//! name all and be named by all.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::ceiling::{Table, differences};
use super::modules::Modules;
use super::tree::Tree;

/// Files that still stand in circles, by crate.
const LEFT: &Table = &[];

type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn check(tree: &Tree, report: &mut Report) {
    check_with(tree, report, LEFT);
}

fn check_with(tree: &Tree, report: &mut Report, left: &Table) {
    let mut found = BTreeMap::new();
    let mut said = Vec::new();
    for folder in tree.crates() {
        let graph = without_families(Modules::of(tree, folder).names);
        let circles = circles(&graph);
        let files = circles.iter().map(Vec::len).sum::<usize>();
        found.insert(folder.to_owned(), files);
        if files > 0 {
            said.push(format!("  {folder}: {files} files"));
            said.extend(circles.iter().flat_map(|circle| edges(&graph, circle)));
        }
    }
    let sum = found.values().sum::<usize>();
    report.count(format!("circles: {sum} files in circles, {} crates without", {
        found.values().filter(|files| **files == 0).count()
    }));
    said.into_iter().for_each(|line| report.count(line));
    let problems = differences("files in circles", &found, left);
    problems.into_iter().for_each(|problem| report.problem(problem));
}

/// Leaves out what a module and those within it name of each other, and the root.
fn without_families(mut graph: Graph) -> Graph {
    let is_within = |a: &str, b: &str| a.starts_with(&format!("{b}::"));
    for (module, named) in &mut graph {
        named.retain(|other| {
            let is_root = module.is_empty() || other.is_empty();
            !is_root && !is_within(module, other) && !is_within(other, module)
        });
    }
    graph
}

/// Sets of modules that each name each other, directly or by way of others of the set.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reached_from(graph, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        let circle: Vec<String> = others
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|back| back.contains(module)))
            .map(|other| (*other).to_owned())
            .collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// What each file of a circle names of the circle.
fn edges(graph: &Graph, circle: &[String]) -> Vec<String> {
    let edge = |module: &String| {
        let named = graph.get(module).into_iter().flatten();
        let named: Vec<_> = named.filter(|other| circle.contains(other)).cloned().collect();
        format!("    {module} names {}", named.join(", "))
    };
    circle.iter().map(edge).collect()
}

fn reached_from<'a>(graph: &'a Graph, module: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = graph.get(module).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(graph.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::check_with;
    use crate::tidy::ceiling::Table;
    use crate::tidy::problems_of;

    fn problems(files: &[(&str, &str)], left: &Table) -> Vec<String> {
        let files = [&[("a/Cargo.toml", ""), ("a/src/lib.rs", "")], files].concat();
        problems_of(|tree, report| check_with(tree, report, left), &files)
    }

    #[test]
    fn sees_a_circle() {
        let two = [("a/src/b.rs", "use crate::c::C;"), ("a/src/c.rs", "fn c() { super::b::b() }")];
        assert_eq!(problems(&two, &[]), ["a: files in circles: 2, at most 0"]);
        assert!(problems(&two, &[("a", 2)]).is_empty());
        assert_eq!(problems(&two[..1], &[("a", 2)]).len(), 1);
        let three = [
            ("a/src/b.rs", "use crate::c::C;"),
            ("a/src/c.rs", "use crate::d::D;"),
            ("a/src/d.rs", "use crate::b::B;"),
        ];
        assert_eq!(problems(&three, &[]), ["a: files in circles: 3, at most 0"]);
        assert!(problems(&three[..2], &[]).is_empty());
    }

    #[test]
    fn a_parent_and_its_children_may_name_each_other() {
        let family = [("a/src/b/mod.rs", "use self::c::C;"), ("a/src/b/c.rs", "use super::B;")];
        assert!(problems(&family, &[]).is_empty());
        let siblings = [("a/src/b/c.rs", "use super::d;"), ("a/src/b/d.rs", "use super::c;")];
        assert_eq!(problems(&siblings, &[]).len(), 1);
    }

    #[test]
    fn the_re_exports_of_the_root_hide_none() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\npub use b::B;\n"),
            ("a/src/b.rs", "use crate::c::C;"),
            ("a/src/c.rs", "use crate::B;"),
        ];
        assert_eq!(problems(&files, &[]).len(), 1);
    }
}
