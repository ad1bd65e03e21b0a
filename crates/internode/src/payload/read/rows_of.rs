//! Which rows of a partition a read is about (`db.filter.ClusteringIndexFilter`).

use rows::codec::{read_bound, write_bound, write_clustering};
use rows::{Bound, Clustering, ClusteringBuilder, Layout};
use types::{ReadError, Reader, WriteBytes};

use super::limits::read_whole_clustering;
use crate::payload::{PayloadError, WriteError};

const SLICES: u8 = 0;
const NAMES: u8 = 1;
/// Bytes of a slice at least: two bounds of kind and number of values.
const LEAST_SLICE: usize = 6;

/// Which rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChoice {
    /// Those between bounds, slice by slice.
    Slices(Vec<(Bound, Bound)>),
    /// Those with these clusterings.
    Names(Vec<Clustering>),
}

/// Which rows, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsOf {
    /// From the last to the first?
    pub reversed: bool,
    /// Which.
    pub choice: RowChoice,
}

impl RowsOf {
    /// All, from the first to the last.
    pub fn all() -> Self {
        let choice = RowChoice::Slices(vec![(Bound::bottom(), Bound::top())]);
        Self { reversed: false, choice }
    }

    /// Reads it.
    pub fn read(layout: &Layout, reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let kind = reader.u8()?;
        let reversed = reader.bool()?;
        let choice = match kind {
            SLICES => {
                let count = reader.count(LEAST_SLICE)?;
                let mut values = ClusteringBuilder::default();
                let mut bound = || -> Result<Bound, PayloadError> {
                    Ok(read_bound(layout, reader, &mut values)?.to_owned())
                };
                let slices = (0..count).map(|_| slice(bound()?, bound()?));
                RowChoice::Slices(slices.collect::<Result<_, PayloadError>>()?)
            }
            NAMES => {
                let count = reader.uvint()?;
                // a clustering takes a byte at least where there are clustering columns; where
                // there are none, one row is all there is
                let most = if layout.clustering.is_empty() { 1 } else { reader.remaining() };
                let count = usize::try_from(count).ok().filter(|count| *count <= most);
                let count = count.ok_or(ReadError::Length(-1))?;
                let names = (0..count).map(|_| read_whole_clustering(layout, reader));
                RowChoice::Names(names.collect::<Result<_, _>>()?)
            }
            kind => return Err(PayloadError::kind("choice of rows", kind)),
        };
        Ok(Self { reversed, choice })
    }

    /// Appends it.
    pub fn write(&self, layout: &Layout, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match &self.choice {
            RowChoice::Slices(slices) => {
                out.put_u8(SLICES);
                out.put_bool(self.reversed);
                out.put_uvint(slices.len() as u64);
                for bound in slices.iter().flat_map(|(start, end)| [start, end]) {
                    write_bound(layout, bound.as_ref(), out)?;
                }
            }
            RowChoice::Names(names) => {
                out.put_u8(NAMES);
                out.put_bool(self.reversed);
                out.put_uvint(names.len() as u64);
                for name in names {
                    write_clustering(layout, name.as_ref(), out)?;
                }
            }
        }
        Ok(())
    }
}

/// A slice starts at a start and ends at an end.
fn slice(start: Bound, end: Bound) -> Result<(Bound, Bound), PayloadError> {
    for (bound, fits) in [(&start, start.kind.is_start()), (&end, end.kind.is_end())] {
        if !fits || bound.kind.is_boundary() {
            return Err(PayloadError::kind("bound of a slice", bound.kind.ordinal()));
        }
    }
    Ok((start, end))
}
