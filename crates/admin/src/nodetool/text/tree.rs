//! Values as `-F json` and `-F yaml` print them: as Jackson and SnakeYAML write Java's maps
//! (`tools.nodetool.stats.StatsPrinter`).

use std::fmt::Write;

use super::number::double;
use crate::nodetool::verb::StatsFormat;

/// Buckets of a Java map at first.
const BUCKETS: usize = 16;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// A map, in the order in which Java goes through its own.
    Map(Vec<(String, Tree)>),
    /// A list.
    List(Vec<Tree>),
    /// A number.
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(String),
    /// Nothing, or a number that is none.
    Nothing,
}

impl Tree {
    /// A map of entries in the order in which Cassandra puts them in.
    pub fn map(entries: impl IntoIterator<Item = (impl Into<String>, Tree)>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().map(|(key, of)| (key.into(), of)).collect();
        let mut buckets = BUCKETS;
        while entries.len() > buckets / 4 * 3 {
            buckets *= 2;
        }
        entries.sort_by_key(|(key, _)| bucket(key, buckets));
        Self::Map(entries)
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The value in a form, as nodetool prints it.
    pub fn print(&self, format: StatsFormat) -> String {
        let mut text = String::new();
        match format {
            StatsFormat::Json => self.json(&mut text, 0),
            StatsFormat::Yaml => self.yaml(&mut text, 0),
        }
        text.push('\n');
        text
    }

    fn json(&self, text: &mut String, depth: usize) {
        match self {
            Self::Number(number) => _ = write!(text, "{number}"),
            Self::Signed(number) => _ = write!(text, "{number}"),
            // as Jackson writes what is no number
            Self::Double(of) if !of.is_finite() => _ = write!(text, "\"{}\"", double(*of)),
            Self::Double(of) => text.push_str(&double(*of)),
            Self::Nothing => text.push_str("null"),
            Self::Text(of) => _ = write!(text, "{}", serde_json::Value::from(of.as_str())),
            Self::List(all) if all.is_empty() => text.push_str("[ ]"),
            Self::List(all) => {
                text.push_str("[ ");
                for (n, of) in all.iter().enumerate() {
                    text.push_str(if n == 0 { "" } else { ", " });
                    of.json(text, depth);
                }
                text.push_str(" ]");
            }
            Self::Map(entries) if entries.is_empty() => text.push_str("{ }"),
            Self::Map(entries) => {
                text.push('{');
                for (n, (key, of)) in entries.iter().enumerate() {
                    text.push_str(if n == 0 { "\n" } else { ",\n" });
                    indent(text, depth + 1);
                    let _ = write!(text, "{} : ", serde_json::Value::from(key.as_str()));
                    of.json(text, depth + 1);
                }
                text.push('\n');
                indent(text, depth);
                text.push('}');
            }
        }
    }

    /// Ends each line that it begins.
    fn yaml(&self, text: &mut String, depth: usize) {
        match self {
            Self::Number(number) => _ = writeln!(text, "{number}"),
            Self::Signed(number) => _ = writeln!(text, "{number}"),
            Self::Double(of) if of.is_nan() => text.push_str(".NaN\n"),
            Self::Double(of) => _ = writeln!(text, "{}", double(*of)),
            Self::Nothing => text.push_str("null\n"),
            Self::Text(of) => _ = writeln!(text, "{}", scalar(of)),
            Self::List(all) if all.is_empty() => text.push_str("[]\n"),
            Self::List(all) => {
                for of in all {
                    indent(text, depth);
                    text.push_str("- ");
                    of.yaml(text, depth + 1);
                }
            }
            Self::Map(entries) if entries.is_empty() => text.push_str("{}\n"),
            Self::Map(entries) => {
                // the first one of a list's stands behind its dash
                let mut stands = text.ends_with("- ");
                for (key, of) in entries {
                    if !std::mem::take(&mut stands) {
                        indent(text, depth);
                    }
                    let _ = write!(text, "{}:", scalar(key));
                    match of {
                        Self::Map(of) if !of.is_empty() => text.push('\n'),
                        Self::List(of) if !of.is_empty() => text.push('\n'),
                        _ => text.push(' '),
                    }
                    let inner = depth + usize::from(!matches!(of, Self::List(_)));
                    of.yaml(text, inner);
                }
            }
        }
    }
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

/// In which of so many buckets a Java map has a key (`HashMap.hash`).
fn bucket(key: &str, buckets: usize) -> usize {
    let hash = key
        .encode_utf16()
        .fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
    (hash ^ (hash >> 16)) as usize & (buckets - 1)
}

/// A text in YAML: in quotes where it would be taken for something else.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_')
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !text.contains(|c: char| c.is_control())
        && !is_moment(text)
        && text.parse::<f64>().is_err()
        && !matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    match is_plain {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

/// Would YAML take it for a time?
fn is_moment(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let year = parts.next().is_some_and(|year| year.len() == 4 && is_digits(year));
    let month = parts.next().is_some_and(|month| month.len() <= 2 && is_digits(month));
    let day = parts.next().is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    year && month && day
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tree {
        let pool = [("ActiveTasks", Tree::Number(1)), ("PendingTasks", Tree::Number(2))];
        Tree::map([
            ("ThreadPools", Tree::map([("ReadStage", Tree::map(pool))])),
            ("DroppedMessage", Tree::map([("a", Tree::text("2026-11-21T22:09:38.123"))])),
            ("WaitLatencies", Tree::map([] as [(&str, Tree); 0])),
            (
                "List",
                Tree::List(vec![Tree::map([("x", Tree::Number(1)), ("y", Tree::text("{}"))])]),
            ),
        ])
    }

    #[test]
    fn json_is_jacksons() {
        let text = sample().print(StatsFormat::Json);
        assert!(text.contains("\"WaitLatencies\" : { }"), "{text}");
        assert!(
            text.contains("\"List\" : [ {\n    \"x\" : 1,\n    \"y\" : \"{}\"\n  } ]"),
            "{text}"
        );
        let pools = "  \"ThreadPools\" : {\n    \"ReadStage\" : {\n      \"";
        assert!(
            text.starts_with("{\n") && text.contains(pools) && text.ends_with("\n}\n"),
            "{text}"
        );
    }

    #[test]
    fn yaml_is_snakeyamls() {
        let text = sample().print(StatsFormat::Yaml);
        assert!(text.contains("DroppedMessage:\n  a: '2026-11-21T22:09:38.123'\n"), "{text}");
        assert!(text.contains("WaitLatencies: {}\n"), "{text}");
        assert!(text.contains("List:\n- x: 1\n  y: '{}'\n"), "{text}");
        assert!(text.contains("ThreadPools:\n  ReadStage:\n    "), "{text}");
    }

    /// `new HashMap` of "a" to "d" and others, as Java 17 goes through it.
    #[test]
    fn maps_have_javas_order() {
        let keys = |of: &[&str]| match Tree::map(of.iter().map(|key| (*key, Tree::Number(0)))) {
            Tree::Map(entries) => entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(keys(&["d", "b", "a", "q"]), ["a", "q", "b", "d"]);
        let stats = ["ThreadPools", "DroppedMessage", "WaitLatencies"];
        assert_eq!(keys(&stats), ["ThreadPools", "WaitLatencies", "DroppedMessage"]);
        let history = ["id", "keyspace_name", "columnfamily_name", "compacted_at", "bytes_in"];
        let found = ["keyspace_name", "bytes_in", "columnfamily_name", "id", "compacted_at"];
        assert_eq!(keys(&history), found);
    }
}
