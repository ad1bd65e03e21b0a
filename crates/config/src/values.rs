//! What a text sets: every key that it names, with the value it gives it.

use std::collections::BTreeMap;

use crate::dropped;
use crate::error::{Error, Result};
use crate::key::{Key, Kind, Standing, Value};
use crate::nearest::nearest;
use crate::old::OLD;
use crate::origin::{Origin, Origins};
use crate::table::Index;
use crate::table::own::is_own;
use crate::yaml::{Node, Value as Yaml, compose};

/// The explicitly set keys, by today's dotted names.
pub(crate) type Values = BTreeMap<&'static str, Value>;

/// A text and where it came from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name of its file, for messages.
    pub name: Option<&'a str>,
    /// What it says.
    pub text: &'a str,
}

/// What texts set, and all that is wrong with them.
#[derive(Default)]
pub(crate) struct Settings {
    pub values: Values,
    pub origins: Origins,
    pub errors: Vec<Error>,
}

/// Reads a whole text.
pub(crate) fn read(index: &Index, source: Source<'_>) -> Settings {
    let mut reader = Reader { index, file: source.name, line: 1, settings: Settings::default() };
    match compose(source.text) {
        Err(error) => reader.fail(error),
        Ok(document) => {
            document.duplicates.into_iter().for_each(|error| reader.fail(error));
            reader.root(document.root);
        }
    }
    reader.settings
}

/// Reads `cassandra.yaml` and the file of Helenus' own keys; keys of that kind that stand in the
/// former are given too.
pub(crate) fn read_both(
    index: &Index,
    cassandra: Source<'_>,
    own: Option<Source<'_>>,
) -> (Settings, Vec<&'static str>) {
    let mut all = read(index, cassandra);
    let misplaced = all.values.keys().copied().filter(|key| is_own(key)).collect();
    let Some(own) = own else { return (all, misplaced) };
    let own = read(index, own);
    all.errors.extend(own.errors);
    for (key, value) in own.values {
        let Some(origin) = own.origins.get(key) else { continue };
        let at = |error: Error| error.at(origin.file.as_deref(), origin.line);
        if !is_own(key) {
            all.errors.push(at(Error::Misplaced { key: origin.written.clone() }));
            continue;
        }
        if let Some(other) = all.values.get(key).filter(|other| **other != value) {
            let (written, other) = (origin.written.clone(), other.or_null());
            let value = value.or_null();
            all.errors.push(at(Error::TwoValues { key: written, value, other }));
            continue;
        }
        all.values.insert(key, value);
        all.origins.insert(key, origin.clone());
    }
    (all, misplaced)
}

/// Reads one `key=value` over `values`.
pub(crate) fn set(index: &Index, values: &mut Values, text: &str) -> Result<()> {
    let (name, value) = text.split_once('=').ok_or_else(|| Error::Override(text.to_string()))?;
    let name = name.trim();
    let bare = match index.get(name) {
        Some(key) => !matches!(key.kind, Kind::List | Kind::Map),
        None => !index.is_section(name),
    };
    let plain =
        |text: &str| Node { line: 1, value: Yaml::Scalar { text: text.to_string(), plain: true } };
    let node = if bare { plain(value) } else { compose(value)?.root.unwrap_or(plain("")) };
    let mut reader = Reader { index, file: None, line: 1, settings: Settings::default() };
    let done = reader.walk(name, name, &node);
    // an override has no line
    let errors = reader.settings.errors.into_iter().chain(done.err()).map(|error| match error {
        Error::At { error, .. } => *error,
        error => error,
    });
    if let Some(error) = Error::of_all(errors.collect()) {
        return Err(error);
    }
    values.append(&mut reader.settings.values);
    Ok(())
}

struct Reader<'a> {
    index: &'a Index,
    file: Option<&'a str>,
    /// Of the key that is read.
    line: usize,
    settings: Settings,
}

impl Reader<'_> {
    fn fail(&mut self, error: Error) {
        self.settings.errors.push(error.at(self.file, self.line));
    }

    fn root(&mut self, root: Option<Node>) {
        let Some(root) = root.filter(|root| !root.is_null()) else { return };
        let Yaml::Map(entries) = &root.value else {
            let what = "it is not a mapping of keys to values".into();
            return self.fail(Error::Yaml { line: root.line, what });
        };
        for (name, node) in entries {
            self.entry(name, name, node);
        }
    }

    /// Reads what stands behind a key, in a line of its own; what is wrong there stops nothing.
    fn entry(&mut self, written: &str, name: &str, node: &Node) {
        self.line = node.line;
        if let Err(error) = self.walk(written, name, node) {
            self.fail(error);
        }
    }

    fn walk(&mut self, written: &str, name: &str, node: &Node) -> Result<()> {
        if let Some(key) = self.index.get(name) {
            let value = key.read(node).map_err(|error| error.spelled(written))?;
            return self.put(written, key, value);
        }
        if let Some(old) = OLD.iter().find(|o| o.name == name)
            && let Some(key) = self.index.get(old.new)
        {
            let value = old.read(key, node)?;
            return self.put(written, key, value);
        }
        if self.index.is_section(name) {
            return self.section(written, name, node);
        }
        Err(self.unknown(name))
    }

    fn section(&mut self, written: &str, name: &str, node: &Node) -> Result<()> {
        if node.is_null() {
            return Ok(());
        }
        let is_class = self.index.get(&format!("{name}.class_name")).is_some();
        match &node.value {
            // Cassandra reads a class either as its bare name, as a mapping, or as a list
            // that holds the one mapping.
            Yaml::Scalar { .. } if is_class => {
                self.walk(written, &format!("{name}.class_name"), node)
            }
            Yaml::List(items) if is_class => match items.as_slice() {
                [one] if matches!(one.value, Yaml::Map(_)) => self.section(written, name, one),
                _ => Err(section_mismatch(name, node)),
            },
            Yaml::Map(entries) => {
                for (key, node) in entries {
                    let (written, name) = (format!("{written}.{key}"), format!("{name}.{key}"));
                    let node = match is_class && key == "parameters" {
                        true => only(node),
                        false => node,
                    };
                    self.entry(&written, &name, node);
                }
                Ok(())
            }
            _ => Err(section_mismatch(name, node)),
        }
    }

    fn put(&mut self, written: &str, key: &'static Key, value: Value) -> Result<()> {
        if value == Value::Null
            && key.default != "null"
            && matches!(key.standing, Standing::Served | Standing::Idle(_))
        {
            return Err(key.mismatch("null").spelled(written));
        }
        let origin = Origin {
            file: self.file.map(str::to_owned),
            line: self.line,
            written: written.to_owned(),
        };
        self.settings.origins.insert(key.name, origin);
        if self.settings.values.insert(key.name, value).is_some() {
            return Err(Error::BothNames { old: written.to_string(), new: key.name });
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> Error {
        if let Some(dropped) = dropped::find(name) {
            let (since, instead) = (dropped.since, dropped.instead);
            return Error::Dropped { key: name.to_string(), since, instead };
        }
        let old = OLD.iter().map(|o| o.name);
        let nearest = nearest(name, self.index.iter().map(|k| k.name).chain(old));
        Error::Unknown { key: name.to_string(), nearest }
    }
}

/// The parameters of a class: a mapping, or a list that holds the one mapping.
fn only(node: &Node) -> &Node {
    match &node.value {
        Yaml::List(items) if items.len() == 1 => items.first().map_or(node, only),
        _ => node,
    }
}

fn section_mismatch(name: &str, node: &Node) -> Error {
    Error::Value { key: name.to_string(), value: node.show(), expected: "a mapping".into() }
}
