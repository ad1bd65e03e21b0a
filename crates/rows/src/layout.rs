//! What rows must know of their table.

use crate::compare::Order;
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
    pub(crate) orders: Box<[Order]>,
    pub(crate) static_traits: Box<[Traits]>,
    pub(crate) regular_traits: Box<[Traits]>,
}

/// What is asked of a column for every cell, computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// How the paths of its cells compare; `None` if it is simple.
    pub(crate) path_order: Option<Order>,
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
            orders: clustering.iter().map(|c| Order::of(&c.ty)).collect(),
            static_traits: traits(&statics),
            regular_traits: traits(&regulars),
            clustering: clustering.into(),
            statics: statics.into(),
            regulars: regulars.into(),
            counter,
        }
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
}

impl Traits {
    fn of(column: &ColumnLayout) -> Self {
        let path_order = match &column.ty {
            CqlType::List { frozen: false, .. } => Some(Order::TimeUuid),
            CqlType::Set { element, frozen: false } => Some(Order::of(element)),
            CqlType::Map { key, frozen: false, .. } => Some(Order::of(key)),
            // The path is the index of the field, a `short` (UserType.nameComparator).
            CqlType::Udt { frozen: false, .. } => Some(Order::Other(CqlType::SmallInt)),
            _ => None,
        };
        let fixed_len = if path_order.is_some() { None } else { fixed_len(&column.ty) };
        Self { path_order, fixed_len }
    }
}

/// Length of the values of a type that are written without their length
/// (`AbstractType.valueLengthIfFixed`): not every type of constant size is one.
pub(crate) fn fixed_len(ty: &CqlType) -> Option<usize> {
    match ty {
        CqlType::Boolean => Some(1),
        CqlType::Int | CqlType::Float => Some(4),
        CqlType::BigInt | CqlType::Double | CqlType::Timestamp => Some(8),
        CqlType::Uuid | CqlType::TimeUuid => Some(16),
        CqlType::Empty => Some(0),
        CqlType::Vector { element, dimension } => {
            fixed_len(element)?.checked_mul(usize::try_from(*dimension).ok()?)
        }
        _ => None,
    }
}
