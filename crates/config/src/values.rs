//! What a text sets: every key that it names, with the value it gives it.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::key::{Key, Kind, Standing, Value};
use crate::nearest::nearest;
use crate::old::OLD;
use crate::table::Index;
use crate::yaml::{Node, Value as Yaml, compose};

/// The explicitly set keys, by today's dotted names.
pub(crate) type Values = BTreeMap<&'static str, Value>;

/// Reads a whole text.
pub(crate) fn read(index: &Index, text: &str) -> Result<Values> {
    let mut reader = Reader { index, values: Values::new() };
    match compose(text)? {
        None => {}
        Some(root) if root.is_null() => {}
        Some(root) => match root.value {
            Yaml::Map(entries) => {
                for (name, node) in &entries {
                    reader.walk(name, node)?;
                }
            }
            _ => {
                return Err(Error::Yaml {
                    line: root.line,
                    what: "it is not a mapping of keys to values".into(),
                });
            }
        },
    }
    Ok(reader.values)
}

/// Reads one `key=value` over `values`.
pub(crate) fn set(index: &Index, values: &mut Values, text: &str) -> Result<()> {
    let (name, value) = text.split_once('=').ok_or_else(|| Error::Override(text.to_string()))?;
    let name = name.trim();
    let bare = match index.get(name) {
        Some(key) => !matches!(key.kind, Kind::List | Kind::Map),
        None => !index.is_section(name),
    };
    let node = if bare {
        Node { line: 1, value: Yaml::Scalar { text: value.to_string(), plain: true } }
    } else {
        compose(value)?
            .unwrap_or(Node { line: 1, value: Yaml::Scalar { text: String::new(), plain: true } })
    };
    let mut reader = Reader { index, values: Values::new() };
    reader.walk(name, &node)?;
    values.append(&mut reader.values);
    Ok(())
}

struct Reader<'a> {
    index: &'a Index,
    values: Values,
}

impl Reader<'_> {
    fn walk(&mut self, name: &str, node: &Node) -> Result<()> {
        if let Some(key) = self.index.get(name) {
            let value = key.read(node)?;
            return self.put(name, key, value);
        }
        if let Some(old) = OLD.iter().find(|o| o.name == name)
            && let Some(key) = self.index.get(old.new)
        {
            let value = old.read(key, node)?;
            return self.put(name, key, value);
        }
        if self.index.is_section(name) {
            return self.section(name, node);
        }
        Err(self.unknown(name))
    }

    fn section(&mut self, name: &str, node: &Node) -> Result<()> {
        if node.is_null() {
            return Ok(());
        }
        let is_class = self.index.get(&format!("{name}.class_name")).is_some();
        match &node.value {
            // Cassandra reads a class either as its bare name, as a mapping, or as a list
            // that holds the one mapping.
            Yaml::Scalar { .. } if is_class => self.walk(&format!("{name}.class_name"), node),
            Yaml::List(items) if is_class => match items.as_slice() {
                [one] if matches!(one.value, Yaml::Map(_)) => self.section(name, one),
                _ => Err(section_mismatch(name, node)),
            },
            Yaml::Map(entries) => entries.iter().try_for_each(|(key, node)| {
                if is_class && key == "parameters" {
                    return self.parameters(&format!("{name}.parameters"), node);
                }
                self.walk(&format!("{name}.{key}"), node)
            }),
            _ => Err(section_mismatch(name, node)),
        }
    }

    /// The parameters of a class: a mapping, or a list that holds the one mapping.
    fn parameters(&mut self, name: &str, node: &Node) -> Result<()> {
        match &node.value {
            Yaml::List(items) => match items.as_slice() {
                [one] => self.parameters(name, one),
                _ => Err(section_mismatch(name, node)),
            },
            _ => self.walk(name, node),
        }
    }

    fn put(&mut self, written: &str, key: &'static Key, value: Value) -> Result<()> {
        if value == Value::Null
            && key.default != "null"
            && matches!(key.standing, Standing::Served | Standing::Idle(_))
        {
            return Err(key.mismatch("null"));
        }
        if self.values.insert(key.name, value).is_some() {
            return Err(Error::BothNames { old: written.to_string(), new: key.name });
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> Error {
        let old = OLD.iter().map(|o| o.name);
        let nearest = nearest(name, self.index.iter().map(|k| k.name).chain(old));
        Error::Unknown { key: name.to_string(), nearest }
    }
}

fn section_mismatch(name: &str, node: &Node) -> Error {
    Error::Value { key: name.to_string(), value: node.show(), expected: "a mapping".into() }
}
