//! Sets of columns, by name and as subsets of another set (`Columns.Serializer`).

use super::error::{EncodeError, Problem};
use crate::layout::Layout;
use types::{Reader, WriteBytes};

/// Supersets smaller than this have their subsets written as a bitmap.
const BITMAP_COLUMNS: usize = 64;
/// Not in the set.
const NOWHERE: u16 = u16::MAX;

/// One kind of the columns of a header, in the order of their encoding.
#[derive(Clone, Debug, Default)]
pub struct ColumnSet {
    pub(crate) columns: Vec<HeaderColumn>,
    /// By index in the layout: the place among `columns`.
    places: Vec<u16>,
    /// As [`Self::write_names`] writes them, if they are kept.
    names: Option<Vec<u8>>,
}

/// What must be known of a column to read and write its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderColumn {
    /// Index in the layout; `None` if it was dropped from it.
    pub(crate) column: Option<u16>,
    pub(crate) complex: bool,
    pub(crate) fixed_len: Option<usize>,
    /// Cells at or before this timestamp are gone.
    pub(crate) dropped_at: Option<i64>,
}

impl PartialEq for ColumnSet {
    fn eq(&self, other: &Self) -> bool {
        // names are kept or not, and follow from the rest
        (&self.columns, &self.places) == (&other.columns, &other.places)
    }
}

impl Eq for ColumnSet {}

impl ColumnSet {
    /// No columns.
    pub const NONE: Self = Self { columns: Vec::new(), places: Vec::new(), names: None };

    /// All columns of a layout.
    pub fn all(layout: &Layout, is_static: bool) -> Self {
        Self::of(layout, is_static, 0..layout.columns(is_static).len() as u16)
    }

    /// Some columns of a layout, given by their indexes in the order in which they are written.
    pub fn of(layout: &Layout, is_static: bool, columns: impl IntoIterator<Item = u16>) -> Self {
        let mut set = Self::default();
        set.refill(layout, is_static, columns);
        set
    }

    /// Makes it the set of other columns, given by their indexes in the order in which they are
    /// written; those the layout does not have are left out.
    pub(crate) fn refill(
        &mut self,
        layout: &Layout,
        is_static: bool,
        columns: impl IntoIterator<Item = u16>,
    ) {
        self.columns.clear();
        self.names = None;
        self.places.clear();
        self.places.resize(layout.columns(is_static).len(), NOWHERE);
        for column in columns {
            let Some(traits) = layout.traits(is_static, column) else { continue };
            let complex = traits.path_type.is_some();
            let fixed_len = traits.fixed_len;
            let name = layout.columns(is_static).get(usize::from(column)).map(|c| &*c.name);
            let dropped = name.and_then(|name| layout.find_dropped(is_static, name));
            let dropped_at = dropped.map(|dropped| dropped.dropped_at);
            self.push(HeaderColumn { column: Some(column), complex, fixed_len, dropped_at });
        }
    }

    fn push(&mut self, column: HeaderColumn) {
        let place = u16::try_from(self.columns.len()).ok().filter(|place| *place != NOWHERE);
        let place = place.expect("a set of columns has no more columns than indexes");
        if let Some(slot) = column.column.and_then(|at| self.places.get_mut(usize::from(at))) {
            *slot = place;
        }
        self.columns.push(column);
    }

    /// Number of columns, dropped ones among them.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Their indexes in the layout, without those that were dropped: ascending, unless an earlier
    /// Helenus wrote them.
    pub fn indexes(&self) -> impl Iterator<Item = u16> {
        self.columns.iter().filter_map(|column| column.column)
    }

    /// Is a column of the layout among them?
    pub fn contains(&self, column: u16) -> bool {
        self.place(column).is_some()
    }

    /// The place of a column of the layout.
    pub(crate) fn place(&self, column: u16) -> Option<(usize, &HeaderColumn)> {
        let place = usize::from(*self.places.get(usize::from(column))?);
        self.columns.get(place).map(|column| (place, column))
    }

    /// Keeps the names as they are written, where they will be again and again.
    pub(crate) fn keep_names(&mut self, layout: &Layout, is_static: bool) {
        if self.names.is_some() {
            return;
        }
        let mut names = Vec::new();
        self.write_names(layout, is_static, &mut names);
        self.names = Some(names);
    }

    /// Writes the names of those that the layout has.
    pub fn write_names(&self, layout: &Layout, is_static: bool, out: &mut Vec<u8>) {
        if let Some(names) = &self.names {
            return out.put(names);
        }
        let columns = layout.columns(is_static);
        let names = self.columns.iter().filter_map(|c| columns.get(usize::from(c.column?)));
        out.put_uvint(names.clone().count() as u64);
        for column in names {
            out.put_vint_bytes(column.name.as_bytes());
        }
    }

    /// Reads names in Cassandra's order. One that the table had once stands for a column whose
    /// cells are read and dropped.
    pub fn read_names(
        layout: &Layout,
        is_static: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Self, Problem> {
        let set = Self::read_names_in_any_order(layout, is_static, reader)?;
        if set.indexes().is_sorted() { Ok(set) } else { Err(Problem::Columns) }
    }

    /// Reads names in the order of the cells that follow. Earlier Helenus had names that begin
    /// beyond ASCII behind all others, in commit logs, hints and batches that are still to be read.
    pub(crate) fn read_names_in_any_order(
        layout: &Layout,
        is_static: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Self, Problem> {
        // A name takes two bytes at least; there are no more columns than indexes for them.
        let count = reader.count(2)?;
        if count > Layout::MAX_COLUMNS {
            return Err(Problem::Columns);
        }
        let mut set = Self::default();
        set.refill(layout, is_static, []);
        for _ in 0..count {
            let bytes = reader.vint_bytes()?;
            let unknown = || Problem::UnknownColumn(String::from_utf8_lossy(bytes).into_owned());
            let name = std::str::from_utf8(bytes).map_err(|_| unknown())?;
            let dropped = layout.find_dropped(is_static, name);
            if let Some(column) = layout.find(is_static, name) {
                if set.contains(column) {
                    return Err(Problem::Columns);
                }
                let traits = layout.traits(is_static, column).ok_or(Problem::Columns)?;
                set.push(HeaderColumn {
                    column: Some(column),
                    complex: traits.path_type.is_some(),
                    fixed_len: traits.fixed_len,
                    dropped_at: dropped.map(|dropped| dropped.dropped_at),
                });
                continue;
            }
            let ty = &dropped.ok_or_else(unknown)?.ty;
            let complex = ty.is_multicell();
            let fixed_len = if complex { None } else { ty.fixed_length() };
            set.push(HeaderColumn { column: None, complex, fixed_len, dropped_at: None });
        }
        Ok(set)
    }

    /// Narrows the set to the subset that follows in the input.
    pub(crate) fn read_subset(
        &self,
        layout: &Layout,
        is_static: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Self, Problem> {
        let mut places = PlaceSet::default();
        places.read_subset(self.len(), reader)?;
        let mut set = Self::default();
        set.refill(layout, is_static, []);
        for place in places.iter() {
            set.push(*self.columns.get(place).expect("a subset names none beyond its superset"));
        }
        Ok(set)
    }

    /// Writes this as a subset of another set of the same layout. A column that the other lacks is
    /// an error: left out, the reader would take the cells of one column for those of another.
    pub(crate) fn write_subset_of(
        &self,
        superset: &Self,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let mut places = PlaceSet::default();
        places.clear(superset.len());
        for column in self.indexes() {
            let (place, _) = superset.place(column).ok_or(EncodeError::Column(column))?;
            places.insert(place);
        }
        places.write_subset(superset.len(), out);
        Ok(())
    }
}

/// A set of places in a [`ColumnSet`], as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceSet {
    words: Vec<u64>,
}

impl PlaceSet {
    /// Empties it and makes room for `count` places.
    pub(crate) fn clear(&mut self, count: usize) {
        self.words.clear();
        self.words.resize(count.div_ceil(64), 0);
    }

    pub(crate) fn insert(&mut self, place: usize) {
        if let Some(word) = self.words.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    #[inline]
    pub(crate) fn contains(&self, place: usize) -> bool {
        self.words.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 != 0)
    }

    /// The places in the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let place = (left != 0).then(|| at * 64 + left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(place)
            })
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Makes it all of `count` places.
    pub(crate) fn fill(&mut self, count: usize) {
        self.clear(count);
        for (at, word) in self.words.iter_mut().enumerate() {
            let left = count - at * 64;
            *word = if left < 64 { (1 << left) - 1 } else { u64::MAX };
        }
    }

    /// Appends it as a subset of `count` places: zero for all; a bitmap of those missing; or, of a
    /// large superset, how many are missing and then the fewer of those present and those missing.
    pub(crate) fn write_subset(&self, count: usize, out: &mut Vec<u8>) {
        assert_eq!(
            self.words.len(),
            count.div_ceil(64),
            "a subset has as many places as its superset"
        );
        let present = self.len();
        assert!(present <= count, "a subset has no more than its superset: {present} of {count}");
        if present == count {
            return out.put_uvint(0);
        }
        if count < BITMAP_COLUMNS {
            let all = (1u64 << count) - 1;
            let word = self.words.first().expect("a subset with at least one place has a word");
            return out.put_uvint(all & !word);
        }
        out.put_uvint((count - present) as u64);
        let write_present = present < count / 2;
        for place in (0..count).filter(|place| self.contains(*place) == write_present) {
            out.put_uvint(place as u64);
        }
    }

    /// Reads what [`Self::write_subset`] wrote.
    pub(crate) fn read_subset(
        &mut self,
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Result<(), Problem> {
        let encoded = reader.uvint()?;
        self.fill(count);
        if encoded == 0 {
            return Ok(());
        }
        if count < BITMAP_COLUMNS {
            if encoded >> count != 0 {
                return Err(Problem::Columns);
            }
            if let Some(word) = self.words.first_mut() {
                *word &= !encoded;
            }
            return Ok(());
        }
        let missing = usize::try_from(encoded).ok().filter(|missing| *missing <= count);
        let missing = missing.ok_or(Problem::Columns)?;
        let present = count - missing;
        let read_present = present < count / 2;
        if read_present {
            self.clear(count);
        }
        let mut next = 0;
        for _ in 0..if read_present { present } else { missing } {
            let place = usize::try_from(reader.uvint()?).map_err(|_| Problem::Columns)?;
            if place < next || place >= count {
                return Err(Problem::Columns);
            }
            next = place + 1;
            if let Some(word) = self.words.get_mut(place / 64) {
                *word ^= 1 << (place % 64);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::PlaceSet;
    use proptest::prelude::*;
    use types::Reader;

    fn written(count: usize, present: impl IntoIterator<Item = usize>) -> Vec<u8> {
        let mut set = PlaceSet::default();
        set.clear(count);
        present.into_iter().for_each(|place| set.insert(place));
        let mut out = Vec::new();
        set.write_subset(count, &mut out);
        out
    }

    #[test]
    fn supersets_of_64_and_more_have_no_bitmap() {
        assert_eq!(written(0, []), [0]);
        assert_eq!(written(64, 0..64), [0]);
        assert_eq!(written(63, 2..63), [0b11]);
        // Two missing, told by their indexes.
        assert_eq!(written(64, 2..64), [2, 0, 1]);
        // Of 64, half and more present: the missing ones are told; fewer: those present.
        assert_eq!(written(64, 32..64).len(), 1 + 32);
        assert_eq!(written(64, [5, 60]), [62, 5, 60]);
    }

    #[test]
    fn what_is_no_subset_is_refused() {
        let read =
            |count, bytes: &[u8]| PlaceSet::default().read_subset(count, &mut Reader::new(bytes));
        assert!(read(3, &[0b111]).is_ok());
        assert!(read(3, &[0b1000]).is_err());
        assert!(read(64, &[2, 1, 1]).is_err());
        assert!(read(64, &[2, 1, 64]).is_err());
        assert!(read(64, &[65]).is_err());
        assert!(read(64, &[2, 1]).is_err());
    }

    proptest! {
        #[test]
        fn subsets_come_back(count in 0usize..200, bits in prop::collection::vec(any::<bool>(), 200)) {
            let present: Vec<_> = (0..count).filter(|place| bits[*place]).collect();
            let bytes = written(count, present.iter().copied());
            let mut set = PlaceSet::default();
            let mut reader = Reader::new(&bytes);
            set.read_subset(count, &mut reader).unwrap();
            prop_assert!(reader.is_empty());
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), present);
        }
    }
}
