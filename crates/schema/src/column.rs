//! A column of a table, and one that was dropped.

use std::sync::Arc;

use types::{CqlType, java_order};

/// What part of a row a column is. In Cassandra's order of kinds (`ColumnMetadata.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKind {
    /// A component of the partition key.
    PartitionKey,
    /// A component of the clustering.
    Clustering,
    /// One value a row.
    Regular,
    /// One value a partition.
    Static,
}

impl ColumnKind {
    /// As in column `kind` of `system_schema.columns`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PartitionKey => "partition_key",
            Self::Clustering => "clustering",
            Self::Regular => "regular",
            Self::Static => "static",
        }
    }

    /// Reads what [`ColumnKind::name`] writes, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::PartitionKey, Self::Clustering, Self::Regular, Self::Static]
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(text))
    }

    /// Partition key or clustering?
    pub fn is_primary_key(self) -> bool {
        matches!(self, Self::PartitionKey | Self::Clustering)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, case as stored.
    pub name: Arc<str>,
    /// Its type, without regard to the clustering order.
    pub ty: CqlType,
    /// What part of a row it is.
    pub kind: ColumnKind,
    /// Place among the columns of its kind for key columns; -1 for others, as in
    /// `system_schema.columns`.
    pub position: i32,
    /// A clustering column stored in descending order?
    pub reversed: bool,
    /// Its index in the table's list of its kind: [`Table::partition_key`](crate::Table),
    /// `clustering`, `statics` or `regulars`. For statics and regulars this is the index in the
    /// layout of rows.
    pub index: u16,
    /// The masking function attached to it, kept as stored.
    pub mask: Option<Arc<ColumnMask>>,
}

impl Column {
    /// Is this a static column?
    pub fn is_static(&self) -> bool {
        self.kind == ColumnKind::Static
    }

    /// Has it one cell an element?
    pub fn is_complex(&self) -> bool {
        !self.kind.is_primary_key() && self.ty.is_multicell()
    }

    /// Where it stands among the columns of its kind, if that is not of the primary key.
    pub fn place(&self) -> rows::ColumnPlace<'_> {
        rows::ColumnPlace::of(self.is_complex(), &self.name)
    }
}

/// Columns of a kind in the order in which `SELECT *` has them (`Columns.selectOrderIterator`),
/// given in Cassandra's order. Those of one cell and those of several are merged, each in its own
/// order, by names whose bytes have a sign.
pub fn select_order<'c>(columns: impl IntoIterator<Item = &'c Column>) -> Vec<&'c Column> {
    let (simple, complex): (Vec<_>, Vec<_>) =
        columns.into_iter().partition(|column| column.place().passes_for_simple());
    let mut merged = Vec::with_capacity(simple.len() + complex.len());
    let (mut simple, mut complex) = (simple.into_iter().peekable(), complex.into_iter().peekable());
    while let (Some(a), Some(b)) = (simple.peek(), complex.peek()) {
        let order = java_order::buffers(a.name.as_bytes(), b.name.as_bytes());
        merged.extend(if order.is_lt() { simple.next() } else { complex.next() });
    }
    merged.extend(simple.chain(complex));
    merged
}

/// A masking function with its arguments, as `system_schema.column_masks` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMask {
    /// Keyspace of the function.
    pub function_keyspace: String,
    /// Name of the function.
    pub function_name: String,
    /// CQL types of the arguments after the first.
    pub argument_types: Vec<String>,
    /// Those arguments as text, without the quotes of a literal; `None` for null.
    pub arguments: Vec<Option<String>>,
}

/// A column that a table once had: its cells up to the time of the drop are to be skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedColumn {
    /// Its name.
    pub name: Arc<str>,
    /// Its type with user types expanded to tuples, so that the types can be dropped.
    pub ty: CqlType,
    /// [`ColumnKind::Regular`] or [`ColumnKind::Static`].
    pub kind: ColumnKind,
    /// Cells written at or before this time are gone, in microseconds since the epoch (a multiple
    /// of 1000: `system_schema` keeps milliseconds).
    pub dropped_at: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Table, TableId};

    /// As Cassandra 5.0.9 answers `SELECT *` (`conformance/corpus/names.cql`).
    #[test]
    fn select_order_is_that_of_cassandra() {
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
        let mut builder = Table::builder("ks", "sets", TableId([1; 16]));
        builder.add("k", CqlType::Int, ColumnKind::PartitionKey, false, None);
        for (name, is_complex) in [
            ("z", false),
            ("a", false),
            ("\u{e9}", false),
            ("\u{fc}", true),
            ("\u{f1}", true),
            ("b", true),
            ("y", true),
            ("a\u{e9}", false),
            ("az", true),
        ] {
            let ty = if is_complex { set.clone() } else { CqlType::Int };
            builder.add(name, ty, ColumnKind::Regular, false, None);
        }
        let table = builder.build();
        let names = |columns: Vec<&Column>| -> Vec<String> {
            columns.iter().map(|column| column.name.to_string()).collect()
        };
        let wanted = ["k", "\u{e9}", "a", "a\u{e9}", "az", "b", "y", "z", "\u{f1}", "\u{fc}"];
        assert_eq!(names(table.all_columns_in_select_order().collect()), wanted);
        let some = |names: &[&str]| -> Vec<&Column> {
            table.regulars.iter().filter(|column| names.contains(&&*column.name)).collect()
        };
        let read = some(&["az", "a\u{e9}", "\u{fc}", "\u{e9}", "a"]);
        assert_eq!(names(select_order(read)), ["\u{e9}", "a", "a\u{e9}", "\u{fc}", "az"]);
        let stored = ["\u{e9}", "a", "a\u{e9}", "z", "\u{f1}", "\u{fc}", "az", "b", "y"];
        assert_eq!(names(table.regulars.iter().collect()), stored);
    }
}
