//! `WITH` clauses.

use std::collections::BTreeSet;

use super::{K, Parser, Res};
use crate::ast::{Property, PropertyValue, Term};
use crate::lexer::Kind;

/// What has been named so far in one clause.
pub(super) type Seen = BTreeSet<String>;

impl Parser<'_> {
    /// `name = value AND ...`.
    pub(super) fn properties(&mut self) -> Res<Vec<Property>> {
        let mut seen = Seen::new();
        self.and_list(|p| p.property(&mut seen))
    }

    pub(super) fn property(&mut self, seen: &mut Seen) -> Res<Property> {
        let name = self.name()?;
        self.looked_ahead();
        self.expect(Kind::Equal, "'='")?;
        let value = if self.kind() == Kind::OpenBrace {
            PropertyValue::Map(self.property_map()?)
        } else if let Some(constant) = self.constant()? {
            PropertyValue::Text(constant.text)
        } else {
            match self.kind() {
                // An unreserved keyword keeps its case.
                Kind::Keyword(word) if !word.is_reserved() => {
                    let text = self.source().to_owned();
                    self.skip();
                    PropertyValue::Text(text)
                }
                _ => return self.no_viable(),
            }
        };
        if !seen.insert(name.clone()) {
            return self.rule(format!("Multiple definitions for property '{name}'"));
        }
        Ok(Property { name, value })
    }

    /// `{'k': 'v'}` of constants, each key once.
    pub(super) fn property_map(&mut self) -> Res<Vec<(String, String)>> {
        let entries = self.map_literal()?;
        let mut seen = BTreeSet::new();
        let mut map = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.property_constant(key, "name")?;
            let value = self.property_constant(value, "value")?;
            if !seen.insert(key.clone()) {
                return self.rule(format!("Multiple definition for property {key}"));
            }
            map.push((key, value));
        }
        Ok(map)
    }

    fn property_constant(&self, term: Term, role: &str) -> Res<String> {
        match term {
            Term::Literal(literal) => Ok(literal.text),
            Term::Marker(_) => self.rule(format!(
                "Invalid property {role}: ? (bind variables are not supported in DDL queries)"
            )),
            _ => self.rule(format!("Invalid property {role}")),
        }
    }

    /// Whether `CLUSTERING ORDER` stands here, and not a property of that name.
    pub(super) fn is_clustering_order(&self) -> bool {
        self.is(K::Clustering) && self.is_at(1, K::Order)
    }
}
