//! What is known of a key: its kind, Cassandra's default and our standing towards it.

use crate::error::{Error, Result};
use crate::quantity::{Bound, Quantity};
use crate::yaml::{Node, Value as Yaml};

/// What a key's value is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false` (also `yes`, `no`, `on`, `off`, as yaml 1.1 has it).
    Bool,
    /// A whole number within bounds, both inclusive.
    Int(i64, i64),
    /// A number.
    Double,
    /// Any text.
    Text,
    /// A duration, a size or a rate.
    Quantity(&'static Bound),
    /// As `Quantity`; a bare number counts seconds (the cache save periods).
    Seconds(&'static Bound),
    /// One of these words, case matters.
    Enum(&'static [&'static str]),
    /// A list of texts.
    List,
    /// Free-form.
    Map,
}

/// What we do with a key of Cassandra's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It reaches a typed field of `Config`.
    Served,
    /// It can mean nothing without a JVM: read, checked and passed over.
    Jvm,
    /// Cassandra 5.0.9 still reads it and uses it for nothing: passed over.
    Inert,
    /// It is about what the node does not do, so that nothing is wrong without it: read, checked,
    /// and said at the start to have no effect, with this reason.
    Idle(&'static str),
    /// A value other than the default stops the start.
    NotYet,
}

impl Standing {
    /// Why a key has no effect, if it has none.
    pub fn no_effect(self) -> Option<&'static str> {
        match self {
            Self::Jvm => Some("the node has no JVM"),
            Self::Inert => Some("Cassandra reads it and does not use it either"),
            Self::Idle(why) => Some(why),
            Self::Served | Self::NotYet => None,
        }
    }
}

/// A key, named as in `cassandra.yaml`; nested ones are dotted.
#[derive(Debug)]
pub struct Key {
    /// Dotted name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// The default as text; `null` where it has none or one that the node derives.
    pub default: &'static str,
    /// Ours.
    pub standing: Standing,
}

/// A row of the table.
pub(crate) const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    standing: Standing,
) -> Key {
    Key { name, kind, default, standing }
}

/// A value, read by its key's kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not set.
    Null,
    /// Of `Kind::Bool`.
    Bool(bool),
    /// Of `Kind::Int`.
    Int(i64),
    /// Of `Kind::Double`.
    Double(f64),
    /// Of `Kind::Text` and `Kind::Enum`.
    Text(String),
    /// Of `Kind::Quantity` and `Kind::Seconds`.
    Quantity(Quantity),
    /// Of `Kind::List`, and a list within a map.
    List(Vec<Value>),
    /// Of `Kind::Map`.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// As `system_views.settings` shows it: `None` is its null.
    pub fn show(&self) -> Option<String> {
        Some(match self {
            Value::Null => return None,
            Value::Bool(v) => v.to_string(),
            Value::Int(v) => v.to_string(),
            Value::Double(v) => show_double(*v),
            Value::Text(v) => v.clone(),
            Value::Quantity(v) => v.to_string(),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(Value::or_null).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Map(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|(k, v)| format!("{k}={}", v.or_null())).collect();
                format!("{{{}}}", entries.join(", "))
            }
        })
    }

    /// As `show`, with `null` spelled out.
    pub fn or_null(&self) -> String {
        self.show().unwrap_or_else(|| "null".into())
    }
}

/// As Java prints a double where that is no longer than 7 digits before the point; beyond, in
/// its scientific form (`1.7976931348623157E308`).
fn show_double(v: f64) -> String {
    if v != 0.0 && !(1e-3..1e7).contains(&v.abs()) {
        let text = format!("{v:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        return format!("{digits}{point}E{exponent}");
    }
    format!("{v:?}")
}

impl Key {
    /// The default, read by the key's own kind. A default that is no value of the kind would
    /// be a slip in the table, which a test rules out; it reads as null.
    pub fn default_value(&self) -> Value {
        match (self.default, self.kind) {
            ("null", _) => Value::Null,
            ("[]", _) => Value::List(Vec::new()),
            ("{}", _) => Value::Map(Vec::new()),
            (text, _) => self.read_text(text).unwrap_or(Value::Null),
        }
    }

    /// Reads a node.
    pub(crate) fn read(&self, node: &Node) -> Result<Value> {
        if node.is_null() {
            return match self.kind {
                Kind::List => Ok(Value::List(Vec::new())),
                _ => Ok(Value::Null),
            };
        }
        match (&node.value, self.kind) {
            (Yaml::Scalar { text, .. }, Kind::List) => Err(self.mismatch(text)),
            (Yaml::List(items), Kind::List) => items
                .iter()
                .map(|item| match &item.value {
                    Yaml::Scalar { text, .. } => Ok(Value::Text(text.clone())),
                    _ => Err(self.mismatch(&item.show())),
                })
                .collect::<Result<_>>()
                .map(Value::List),
            (Yaml::Map(_) | Yaml::List(_), Kind::Map) => Ok(free(node)),
            (Yaml::Scalar { text, .. }, _) => {
                self.read_text(text).ok_or_else(|| self.mismatch(text))
            }
            _ => Err(self.mismatch(&node.show())),
        }
    }

    fn read_text(&self, text: &str) -> Option<Value> {
        match self.kind {
            Kind::Bool => bool_of(text).map(Value::Bool),
            Kind::Int(least, most) => {
                int_of(text).filter(|n| (least..=most).contains(n)).map(Value::Int)
            }
            Kind::Double => double_of(text).map(Value::Double),
            Kind::Text => Some(Value::Text(text.to_string())),
            Kind::Quantity(bound) => bound.parse(text).map(Value::Quantity),
            Kind::Seconds(bound) => match text.parse() {
                Ok(seconds) => bound.of(seconds, "s").map(Value::Quantity),
                Err(_) => bound.parse(text).map(Value::Quantity),
            },
            Kind::Enum(words) => {
                words.iter().find(|w| **w == text).map(|w| Value::Text((*w).to_string()))
            }
            Kind::List | Kind::Map => None,
        }
    }

    /// The error for a value of the wrong form.
    pub(crate) fn mismatch(&self, value: &str) -> Error {
        Error::Value {
            key: self.name.to_string(),
            value: value.to_string(),
            expected: self.expected(),
        }
    }

    /// The accepted forms, for messages and documentation.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Bool => "true or false".into(),
            Kind::Int(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Double => "a number".into(),
            Kind::Text => "a text".into(),
            Kind::Quantity(bound) => bound.to_string(),
            Kind::Seconds(bound) => format!("{bound}, or a bare number of seconds"),
            Kind::Enum(words) => format!("one of {} (case matters)", words.join(", ")),
            Kind::List => "a list".into(),
            Kind::Map => "a mapping".into(),
        }
    }
}

fn free(node: &Node) -> Value {
    match &node.value {
        _ if node.is_null() => Value::Null,
        Yaml::Scalar { text, .. } => Value::Text(text.clone()),
        Yaml::List(items) => Value::List(items.iter().map(free).collect()),
        Yaml::Map(entries) => {
            Value::Map(entries.iter().map(|(k, v)| (k.clone(), free(v))).collect())
        }
    }
}

/// The boolean words of yaml 1.1, which is what Cassandra's parser speaks.
fn bool_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// The whole numbers of yaml 1.1 (decimal, `0x`, `0b`, octal by a leading zero, underscores),
/// but for base 60.
pub(crate) fn int_of(text: &str) -> Option<i64> {
    let text = text.replace('_', "");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1i128, rest),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let (digits, radix) = match digits {
        d if d.starts_with("0x") => (d.get(2..)?, 16),
        d if d.starts_with("0b") => (d.get(2..)?, 2),
        d if d.len() > 1 && d.starts_with('0') => (d.get(1..)?, 8),
        d => (d, 10),
    };
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    i64::try_from(sign * i128::from_str_radix(digits, radix).ok()?).ok()
}

fn double_of(text: &str) -> Option<f64> {
    let plain = text.replace('_', "");
    let starts = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.');
    if !plain.starts_with(starts) {
        return None;
    }
    plain.parse::<f64>().ok().filter(|v| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_yamls() {
        assert_eq!(int_of("1_000"), Some(1000));
        assert_eq!(int_of("0x1F"), Some(31));
        assert_eq!(int_of("010"), Some(8));
        assert_eq!(int_of("-12"), Some(-12));
        for text in ["", "-", "1.0", "12s", "--1", "0x", "+-1", "99999999999999999999"] {
            assert_eq!(int_of(text), None, "{text:?}");
        }
        assert_eq!(double_of("inf"), None);
        assert_eq!(double_of(".5"), Some(0.5));
    }

    #[test]
    fn doubles_print_as_java_prints_them() {
        assert_eq!(show_double(f64::MAX), "1.7976931348623157E308");
        assert_eq!(show_double(8.0), "8.0");
        assert_eq!(show_double(0.95), "0.95");
        assert_eq!(show_double(0.0), "0.0");
        assert_eq!(show_double(1e7), "1.0E7");
    }
}
