//! Untyped yaml with positions, composed from a parser's events under fixed bounds.
//!
//! Scalars stay text: only the key they belong to says how to read them. Anchors, aliases and
//! several documents in a file are refused, as nothing in `cassandra.yaml` needs them and an
//! alias is the one way in which a small file becomes a large tree.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::error::{Error, Result};

/// Largest accepted text, in bytes. The annotated file of a release has about 160 KiB.
pub const MAX_BYTES: usize = 4 << 20;
/// Deepest accepted nesting. The deepest key of Cassandra's own stands five levels down.
pub const MAX_DEPTH: usize = 32;
/// Most nodes (scalars, lists and mappings) that one text may hold.
pub const MAX_NODES: usize = 100_000;

/// A yaml node and the line where it starts, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub line: usize,
    pub value: Value,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Text; `plain` when it was written without quotes, so that `null` may mean null.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    /// In the order of the text; keys are unique.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Whether the node is an unquoted `null`, `~` or nothing at all.
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, plain } => {
                *plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            Value::List(_) | Value::Map(_) => false,
        }
    }

    /// One line for error messages.
    pub fn show(&self) -> String {
        match &self.value {
            Value::Scalar { text, .. } => text.clone(),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Map(entries) => format!("a mapping of {}", entries.len()),
        }
    }
}

/// What a text holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    /// `None` where it holds nothing.
    pub root: Option<Node>,
    /// Keys that stand twice in one mapping: the first one counts.
    pub duplicates: Vec<Error>,
}

/// The one document of `text`.
pub(crate) fn compose(text: &str) -> Result<Document> {
    if text.len() > MAX_BYTES {
        return Err(Error::TooLarge { what: "bytes", limit: MAX_BYTES });
    }
    let mut composer =
        Composer { parser: Parser::new_from_str(text), nodes: 0, duplicates: Vec::new() };
    let mut root = None;
    loop {
        let (event, span) = composer.next()?;
        match event {
            Event::StreamEnd => return Ok(Document { root, duplicates: composer.duplicates }),
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
            other if root.is_none() => root = Some(composer.node(other, span, 0)?),
            _ => {
                return Err(Error::Yaml {
                    line: line(span),
                    what: "a second document is not supported".into(),
                });
            }
        }
    }
}

struct Composer<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    nodes: usize,
    duplicates: Vec<Error>,
}

impl<'a> Composer<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span)> {
        match self.parser.next_event() {
            Some(Ok(pair)) => Ok(pair),
            Some(Err(e)) => Err(scan(&e)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Error::TooLarge { what: "nodes", limit: MAX_NODES });
        }
        if depth > MAX_DEPTH {
            return Err(Error::TooLarge { what: "levels of nesting", limit: MAX_DEPTH });
        }
        let at = line(span);
        let refuse = |what: &str| Err(Error::Yaml { line: at, what: what.into() });
        let value = match event {
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _)
                if anchor != 0 =>
            {
                return refuse("anchors are not supported");
            }
            Event::Scalar(text, style, _, _) => {
                Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }
            }
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            Event::Alias(_) => return refuse("aliases are not supported"),
            _ => return refuse("the document ends early"),
        };
        Ok(Node { line: at, value })
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Value::Map(entries));
            }
            let key = self.node(event, span, depth + 1)?;
            let Value::Scalar { text: name, .. } = key.value else {
                return Err(Error::Yaml { line: key.line, what: "a key is not a string".into() });
            };
            let (event, span) = self.next()?;
            // the line that an operator looks for is the one of the key
            let node = Node { line: key.line, ..self.node(event, span, depth + 1)? };
            match seen.insert(name.clone()) {
                true => entries.push((name, node)),
                false => self.duplicates.push(Error::Duplicate { key: name, line: key.line }),
            }
        }
    }
}

fn line(span: Span) -> usize {
    span.start.line()
}

fn scan(e: &ScanError) -> Error {
    Error::Yaml { line: e.marker().line(), what: e.info().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composes_in_order_with_lines() {
        let root = compose("a: 1\nb:\n  - x\n  - 'y'\n").unwrap().root.unwrap();
        let Value::Map(entries) = root.value else { panic!() };
        assert_eq!(entries.iter().map(|e| e.0.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((entries[0].1.line, entries[1].1.line), (1, 2));
        let Value::List(items) = &entries[1].1.value else { panic!() };
        assert_eq!(items[1].line, 4);
        assert_eq!(items[1].value, Value::Scalar { text: "y".into(), plain: false });
    }

    #[test]
    fn empty_text_is_no_document() {
        assert_eq!(compose("").unwrap().root, None);
        assert_eq!(compose("# only a comment\n").unwrap().root, None);
    }

    #[test]
    fn finds_duplicates_and_refuses_aliases_and_second_documents() {
        let twice = compose("a: 1\na: 2\nb: 1\nb: 2\n").unwrap().duplicates;
        assert!(matches!(
            twice.as_slice(),
            [Error::Duplicate { line: 2, .. }, Error::Duplicate { line: 4, .. }]
        ));
        assert!(matches!(compose("a: &x 1\nb: *x\n"), Err(Error::Yaml { .. })));
        assert!(matches!(compose("a: 1\n---\nb: 2\n"), Err(Error::Yaml { .. })));
        assert!(matches!(compose("a: [1, 2\n"), Err(Error::Yaml { .. })));
    }

    #[test]
    fn bounds_depth_nodes_and_bytes() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 2), "]".repeat(MAX_DEPTH + 2));
        assert!(matches!(compose(&deep), Err(Error::TooLarge { .. })));
        let wide = format!("[{}]", "1,".repeat(MAX_NODES + 1));
        assert!(matches!(compose(&wide), Err(Error::TooLarge { .. })));
        assert!(matches!(compose(&" ".repeat(MAX_BYTES + 1)), Err(Error::TooLarge { .. })));
    }
}
