//! What the encoding of a partition or file is relative to: format, bases and columns
//! (`SerializationHeader`).

use super::Format;
use super::columns::ColumnSet;
use super::stats::EncodingStats;
use crate::layout::Layout;

/// The header of an encoding. The columns of its rows are a subset of these.
#[derive(Clone, Debug)]
pub struct Header {
    /// Which of the formats.
    pub format: Format,
    /// The bases.
    pub stats: EncodingStats,
    pub(crate) statics: ColumnSet,
    pub(crate) regulars: ColumnSet,
}

impl Header {
    /// With all columns of a layout: of an SSTable whose header component has just them.
    pub fn of_layout(format: Format, stats: EncodingStats, layout: &Layout) -> Self {
        let columns = |is_static| ColumnSet::all(layout, is_static);
        Self { format, stats, statics: columns(true), regulars: columns(false) }
    }

    /// With some columns of a layout, given by their indexes in the order in which rows have them.
    pub fn of_columns(
        format: Format,
        stats: EncodingStats,
        layout: &Layout,
        statics: impl IntoIterator<Item = u16>,
        regulars: impl IntoIterator<Item = u16>,
    ) -> Self {
        let (statics, regulars) =
            (ColumnSet::of(layout, true, statics), ColumnSet::of(layout, false, regulars));
        Self { format, stats, statics, regulars }
    }

    /// With sets of columns.
    pub fn of_sets(
        format: Format,
        stats: EncodingStats,
        statics: ColumnSet,
        regulars: ColumnSet,
    ) -> Self {
        Self { format, stats, statics, regulars }
    }

    /// Its columns.
    pub fn columns(&self, is_static: bool) -> &ColumnSet {
        if is_static { &self.statics } else { &self.regulars }
    }
}
