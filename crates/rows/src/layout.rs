//! What rows must know of their table.

use types::CqlType;

/// A clustering column: its type and its direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringColumn {
    /// Type of the values.
    pub ty: CqlType,
    /// Declared `DESC`?
    pub reversed: bool,
}

/// A static or regular column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Name, as in `system_schema.columns`.
    pub name: Box<str>,
    /// Type of the values.
    pub ty: CqlType,
}

impl ColumnLayout {
    /// One cell an element?
    pub fn is_complex(&self) -> bool {
        self.ty.is_multicell()
    }

    fn place(&self) -> ColumnPlace<'_> {
        ColumnPlace::of(self.is_complex(), &self.name)
    }
}

/// Where a column stands among those of its kind, in Cassandra's order of them
/// (`ColumnMetadata.compareTo`): all bytes that are relative to a set of columns follow it.
///
/// Cassandra compares the first bytes of names as a number with its top bit flipped, and shifts
/// that to the right: so names that begin beyond ASCII come first, and apart from that the order is
/// that of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnPlace<'n> {
    is_complex: bool,
    begins_in_ascii: bool,
    name: &'n [u8],
}

impl<'n> ColumnPlace<'n> {
    /// Of a column that has one cell, or one an element.
    pub fn of(is_complex: bool, name: &'n str) -> Self {
        let name = name.as_bytes();
        Self { is_complex, begins_in_ascii: name.first().is_none_or(u8::is_ascii), name }
    }

    /// Does Cassandra take it for a column of one cell, or for one of several? It looks for the
    /// first of the latter by an empty name, and so takes those that begin beyond ASCII for the
    /// former.
    pub fn passes_for_simple(self) -> bool {
        !self.is_complex || !self.begins_in_ascii
    }
}

/// A column that the table had (`system_schema.dropped_columns`). Peers and files may still hold
/// data of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedColumn {
    /// Its name.
    pub name: Box<str>,
    /// Type that its data has.
    pub ty: CqlType,
    /// Was it static?
    pub is_static: bool,
    /// Timestamp of the drop, in microseconds: what was written at or before it is gone.
    pub dropped_at: i64,
}

/// The columns of a table as rows see them. A cell names its column by the index into
/// [`Layout::statics`] or [`Layout::regulars`], whichever its row belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Clustering columns by position.
    pub clustering: Box<[ClusteringColumn]>,
    /// Static columns in Cassandra's order ([`ColumnPlace`]).
    pub statics: Box<[ColumnLayout]>,
    /// Regular columns in the same order.
    pub regulars: Box<[ColumnLayout]>,
    /// A table of counters?
    pub counter: bool,
    /// Columns that were dropped; one may be among the columns again.
    pub dropped: Box<[DroppedColumn]>,
    pub(crate) static_traits: Box<[Traits]>,
    pub(crate) regular_traits: Box<[Traits]>,
    /// Of the columns and their order: [`Layout::has_columns_of`].
    columns_hash: [u64; 2],
}

/// What is asked of a column for every cell, computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// The type as which the paths of its cells compare; `None` if it is simple.
    pub(crate) path_type: Option<CqlType>,
    /// Length of a value that is written bare (`AbstractType.valueLengthIfFixed`).
    pub(crate) fixed_len: Option<usize>,
}

impl Layout {
    /// The most columns of one kind: indexes are `u16`.
    pub const MAX_COLUMNS: usize = u16::MAX as usize;

    /// Sorts the columns as Cassandra does. Columns past [`Self::MAX_COLUMNS`] cannot be named by a
    /// cell; the schema refuses such a table long before.
    pub fn new(
        clustering: Vec<ClusteringColumn>,
        mut statics: Vec<ColumnLayout>,
        mut regulars: Vec<ColumnLayout>,
        counter: bool,
    ) -> Self {
        let most = statics.len().max(regulars.len());
        assert!(
            most <= Self::MAX_COLUMNS,
            "each column has an index that a cell can name: {most} columns"
        );
        for columns in [&mut statics, &mut regulars] {
            columns.sort_by(|a, b| a.place().cmp(&b.place()));
        }
        let traits = |columns: &[ColumnLayout]| columns.iter().map(Traits::of).collect();
        let mut named = Vec::new();
        for column in statics.iter().map(Some).chain([None]).chain(regulars.iter().map(Some)) {
            // no name has such a byte
            named.push(column.map_or(0xff, |column| 0xfd + u8::from(column.is_complex())));
            named.extend_from_slice(column.map_or(&[], |column| column.name.as_bytes()));
        }
        Self {
            dropped: Box::default(),
            columns_hash: types::hash128(&named),
            static_traits: traits(&statics),
            regular_traits: traits(&regulars),
            clustering: clustering.into(),
            statics: statics.into(),
            regulars: regulars.into(),
            counter,
        }
    }

    /// The same with columns that were dropped.
    pub fn with_dropped(mut self, dropped: Vec<DroppedColumn>) -> Self {
        self.dropped = dropped.into();
        self
    }

    /// Do the cells of both name the same columns? Told without looking at each: it is asked for
    /// each write.
    #[inline]
    pub fn has_columns_of(&self, other: &Self) -> bool {
        self.columns_hash == other.columns_hash
    }

    /// The dropped column of a name.
    pub fn find_dropped(&self, is_static: bool, name: &str) -> Option<&DroppedColumn> {
        self.dropped.iter().find(|column| column.is_static == is_static && *column.name == *name)
    }

    /// The columns that the cells of a row name.
    pub fn columns(&self, is_static: bool) -> &[ColumnLayout] {
        if is_static { &self.statics } else { &self.regulars }
    }

    /// Index of the column named `name`.
    pub fn find(&self, is_static: bool, name: &str) -> Option<u16> {
        let columns = self.columns(is_static);
        let at = |is_complex| {
            let place = ColumnPlace::of(is_complex, name);
            columns.binary_search_by(|column| column.place().cmp(&place)).ok()
        };
        let index = at(false).or_else(|| at(true))?;
        Some(u16::try_from(index).expect("a layout has no more columns than indexes"))
    }

    pub(crate) fn traits(&self, is_static: bool, column: u16) -> Option<&Traits> {
        let traits = if is_static { &self.static_traits } else { &self.regular_traits };
        traits.get(usize::from(column))
    }

    /// The type as which the paths of a column's cells compare; `None` if it is simple.
    #[inline]
    pub(crate) fn path_type(&self, is_static: bool, column: u16) -> Option<&CqlType> {
        self.traits(is_static, column)?.path_type.as_ref()
    }
}

impl Traits {
    fn of(column: &ColumnLayout) -> Self {
        let path_type = match &column.ty {
            CqlType::List { frozen: false, .. } => Some(CqlType::TimeUuid),
            CqlType::Set { element, frozen: false } => Some((**element).clone()),
            CqlType::Map { key, frozen: false, .. } => Some((**key).clone()),
            // The path is the index of the field, a `short` (UserType.nameComparator).
            CqlType::Udt { frozen: false, .. } => Some(CqlType::SmallInt),
            _ => None,
        };
        // The values of a complex column's cells are never written bare (interop.md, 4.3).
        let fixed_len = if path_type.is_some() { None } else { column.ty.fixed_length() };
        Self { path_type, fixed_len }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// The comparison as Cassandra makes it, of numbers that hold what comes first.
    fn as_cassandra_does(a: (bool, &[u8]), b: (bool, &[u8])) -> Ordering {
        let prefix = |name: &[u8]| {
            let mut first = [0; 8];
            let length = name.len().min(8);
            first[..length].copy_from_slice(&name[..length]);
            u64::from_be_bytes(first) ^ 1 << 63
        };
        let order = |(is_complex, name): (bool, &[u8])| {
            let kind = 2_u64 << 61 | u64::from(is_complex) << 60;
            (kind | prefix(name) >> 16).cast_signed()
        };
        order(a)
            .cmp(&order(b))
            .then_with(|| prefix(a.1).cast_signed().cmp(&prefix(b.1).cast_signed()))
            .then_with(|| a.1.cmp(b.1))
    }

    proptest! {
        #[test]
        fn places_are_those_of_cassandra(
            a in "[aAz\u{0}\u{e9}\u{c9}\u{3a9}\u{5217}\u{1f600}\u{fb01}]{0,10}",
            b in "[aAz\u{0}\u{e9}\u{c9}\u{3a9}\u{5217}\u{1f600}\u{fb01}]{0,10}",
            complex in any::<(bool, bool)>(),
        ) {
            let ours = ColumnPlace::of(complex.0, &a).cmp(&ColumnPlace::of(complex.1, &b));
            let theirs = as_cassandra_does((complex.0, a.as_bytes()), (complex.1, b.as_bytes()));
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn columns_that_begin_beyond_ascii_come_first_and_all_are_found() {
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
        let names = ["z", "\u{e9}", "a", "a\u{e9}", "\u{5217}", "", "Z", "\u{fc}", "az"];
        let columns = names.into_iter().map(|name| {
            let ty = if matches!(name, "\u{fc}" | "az") { set.clone() } else { CqlType::Int };
            ColumnLayout { name: name.into(), ty }
        });
        let layout = Layout::new(Vec::new(), Vec::new(), columns.collect(), false);
        let ordered: Vec<&str> = layout.regulars.iter().map(|column| &*column.name).collect();
        assert_eq!(ordered, ["\u{e9}", "\u{5217}", "", "Z", "a", "a\u{e9}", "z", "\u{fc}", "az"]);
        for (at, name) in (0..).zip(ordered) {
            assert_eq!(layout.find(false, name), Some(at), "{name}");
        }
        assert_eq!(layout.find(false, "\u{e8}"), None);
    }
}
