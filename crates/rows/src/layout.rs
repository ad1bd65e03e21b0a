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
}

/// A column that the table had (`system_schema.dropped_columns`). Peers and files may still hold data
/// of it.
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
    /// Static columns in Cassandra's order: simple before complex, then by name bytes.
    pub statics: Box<[ColumnLayout]>,
    /// Regular columns in the same order.
    pub regulars: Box<[ColumnLayout]>,
    /// A table of counters?
    pub counter: bool,
    /// Columns that were dropped; one may be among the columns again.
    pub dropped: Box<[DroppedColumn]>,
    pub(crate) static_traits: Box<[Traits]>,
    pub(crate) regular_traits: Box<[Traits]>,
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
        assert!(statics.len().max(regulars.len()) <= Self::MAX_COLUMNS, "too many columns");
        for columns in [&mut statics, &mut regulars] {
            columns.sort_by(|a, b| (a.is_complex(), &a.name).cmp(&(b.is_complex(), &b.name)));
        }
        let traits = |columns: &[ColumnLayout]| columns.iter().map(Traits::of).collect();
        Self {
            dropped: Box::default(),
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
        let simple = columns.partition_point(|c| !c.is_complex());
        let (head, rest) = columns.split_at_checked(simple)?;
        let at = match head.binary_search_by(|c| (*c.name).cmp(name)) {
            Ok(at) => at,
            Err(_) => simple + rest.binary_search_by(|c| (*c.name).cmp(name)).ok()?,
        };
        u16::try_from(at).ok()
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
