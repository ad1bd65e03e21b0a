//! What became of changes of the schema, and what of them must be there in the end.

use std::collections::BTreeMap;

use schema::Schema;

/// What is known of a table.
#[derive(Clone, Debug)]
pub struct Defined {
    /// Columns that it must have.
    pub columns: Vec<String>,
    /// Is it dropped for sure?
    pub is_dropped: bool,
    /// It may be dropped, or not be what it was meant to be: nothing is asked of it any more.
    pub is_unsure: bool,
}

/// What became of the schema, by table.
#[derive(Clone, Debug, Default)]
pub struct Definitions(BTreeMap<String, Defined>);

impl Definitions {
    /// What of it is not so in a schema.
    pub fn missing(&self, schema: &Schema) -> Option<String> {
        self.0.iter().find_map(|(name, defined)| {
            let table = schema.table("ring", name);
            match table {
                _ if defined.is_unsure => None,
                Some(_) if defined.is_dropped => Some(format!("{name} is still there")),
                None if !defined.is_dropped => Some(format!("{name} is not there")),
                Some(table) => {
                    let lacks = |column: &&String| table.column(column).is_none();
                    let column = defined.columns.iter().find(lacks);
                    column.map(|column| format!("{name} has no {column}"))
                }
                None => None,
            }
        })
    }

    /// The tables whose names begin so and that are there for sure.
    pub fn there(&self, prefix: &str) -> Vec<&str> {
        let is_there = |(name, defined): &(&String, &Defined)| {
            name.starts_with(prefix) && !defined.is_dropped && !defined.is_unsure
        };
        self.0.iter().filter(is_there).map(|(name, _)| name.as_str()).collect()
    }

    /// Something is known of a table.
    pub fn note(&mut self, table: &str, change: impl FnOnce(&mut Defined)) {
        let nothing = || Defined { columns: Vec::new(), is_dropped: false, is_unsure: false };
        change(self.0.entry(table.to_owned()).or_insert_with(nothing));
    }
}
