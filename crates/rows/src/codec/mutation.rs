//! Mutations (`Mutation.MutationSerializer`, `PartitionUpdate.PartitionUpdateSerializer`), the
//! payload of MUTATION_REQ, READ_REPAIR_REQ, hints, batches and the commit log.

use super::Format;
use super::columns::PlaceSet;
use super::decode::{Decoded, Decoder};
use super::encode::Encoder;
use super::error::{CodecError, EncodeError, Problem};
use super::header::Header;
use super::partition::{
    PartitionStart, Selection, read_start_of, write_empty_partition, write_partition_end,
    write_partition_start,
};
use super::stats::EncodingStats;
use crate::clustering::{Bound, BoundRef, ClusteringRef};
use crate::compare::compare;
use crate::layout::Layout;
use crate::marker::{MarkerRef, Unfiltered};
use crate::partition::{Mutation, PartitionUpdate, UpdateBuilder};
use crate::ranges::RangeTombstone;
use crate::row::RowRef;
use crate::time::Deletion;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{ReadError, Reader, WriteBytes};

/// Encodes mutations at messaging version 12; keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct MutationEncoder {
    encoder: Encoder,
    /// Of the columns in the update that is encoded.
    places: PlaceSet,
    last: Option<Last>,
}

/// The header of the last update: the next one's mostly has the same columns.
#[derive(Clone, Debug)]
struct Last {
    layout: Arc<Layout>,
    header: Header,
    statics: PlaceSet,
    regulars: PlaceSet,
}

impl MutationEncoder {
    /// An encoder with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a mutation.
    pub fn mutation(&mut self, mutation: &Mutation, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.put_uvint(mutation.updates().len() as u64);
        mutation.updates().iter().try_for_each(|update| self.update(update, out))
    }

    /// Appends one update: the payload of Paxos commits.
    pub fn update(
        &mut self,
        update: &PartitionUpdate,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let layout = &*update.layout;
        out.put(&update.table);
        if update.is_empty() {
            write_empty_partition(&update.key, false, out);
            return Ok(());
        }
        let mut last = self.take_last(&update.layout);
        last.header.stats = EncodingStats::of(update);
        self.gather(true, update.static_row().into_iter(), &mut last);
        self.gather(false, update.rows.iter(), &mut last);
        let start = PartitionStart {
            key: &update.key,
            is_reversed: false,
            header: None,
            deletion: update.deletion,
            static_row: update.static_row.as_deref().map(Cow::Borrowed),
            row_estimate: Some(i32::try_from(update.rows.len()).unwrap_or(i32::MAX)),
            consumed: 0,
        };
        let (encoder, header) = (&mut self.encoder, &last.header);
        write_partition_start(layout, header, Selection::Names, &start, encoder, out)?;
        for unfiltered in update.unfiltereds(false) {
            encoder.unfiltered(layout, header, unfiltered, 0, out)?;
        }
        write_partition_end(out);
        self.last = Some(last);
        Ok(())
    }

    /// The header of the last update; without columns if that was of another layout.
    fn take_last(&mut self, layout: &Arc<Layout>) -> Last {
        let mut last = self.last.take().unwrap_or_else(|| Last {
            layout: Arc::clone(layout),
            header: Header::of_columns(Format::Messaging12, EncodingStats::NONE, layout, [], []),
            statics: PlaceSet::default(),
            regulars: PlaceSet::default(),
        });
        if !Arc::ptr_eq(&last.layout, layout) {
            last.layout = Arc::clone(layout);
            last.header.statics.refill(layout, true, []);
            last.header.regulars.refill(layout, false, []);
            last.statics.clear(0);
            last.regulars.clear(0);
        }
        last
    }

    /// Brings the columns of rows into the header, if they are not those that are in it.
    fn gather<'r>(
        &mut self,
        is_static: bool,
        rows: impl Iterator<Item = RowRef<'r>>,
        last: &mut Last,
    ) {
        let Last { layout, header, statics, regulars } = last;
        let (set, places) = match is_static {
            true => (&mut header.statics, statics),
            false => (&mut header.regulars, regulars),
        };
        self.places.clear(layout.columns(is_static).len());
        for row in rows {
            row.each_column(|column| self.places.insert(usize::from(column)));
        }
        if self.places == *places {
            return set.keep_names(layout, is_static);
        }
        std::mem::swap(&mut self.places, places);
        set.refill(layout, is_static, places.iter().map(|place| place as u16));
    }
}

/// Decodes mutations, of messaging version 12 if not told otherwise; keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct MutationDecoder {
    decoder: Decoder,
    /// Are they of messaging version 13?
    is_of_13: bool,
    /// The clustering of the last unfiltered.
    last: Vec<u8>,
    /// The range that is open.
    open: Option<(Bound, Deletion)>,
}

impl MutationDecoder {
    /// A decoder with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder of mutations of messaging version 13.
    pub fn of_messaging_13() -> Self {
        Self { is_of_13: true, ..Self::default() }
    }

    /// Reads a mutation. `layout_of` resolves the ids of tables.
    pub fn mutation(
        &mut self,
        reader: &mut Reader<'_>,
        layout_of: &dyn Fn(&[u8; 16]) -> Option<Arc<Layout>>,
    ) -> Result<Mutation, CodecError> {
        let offset = reader.position();
        // An update takes a table id, the length of a key and flags.
        let count = reader.count(18).map_err(|e| CodecError::at(offset, e))?;
        if count == 0 {
            return Err(CodecError::at(offset, Problem::Mutation));
        }
        let mut mutation = Mutation::new(self.update(reader, layout_of)?);
        for _ in 1..count {
            let offset = reader.position();
            let update = self.update(reader, layout_of)?;
            mutation.push(update).map_err(|_| CodecError::at(offset, Problem::Mutation))?;
        }
        Ok(mutation)
    }

    /// Reads one update.
    pub fn update(
        &mut self,
        reader: &mut Reader<'_>,
        layout_of: &dyn Fn(&[u8; 16]) -> Option<Arc<Layout>>,
    ) -> Result<PartitionUpdate, CodecError> {
        let offset = reader.position();
        let table = reader.array::<16>().map_err(|e| CodecError::at(offset, e))?;
        let layout = layout_of(&table)
            .ok_or_else(|| CodecError::at(offset, Problem::UnknownTable(table)))?;
        let base = reader.position();
        let within = |error: CodecError| CodecError { offset: base + error.offset, ..error };
        let format = if self.is_of_13 { Format::Messaging13 } else { Format::Messaging12 };
        let start =
            read_start_of(format, &layout, Selection::Names, reader.rest(), &mut self.decoder)
                .map_err(within)?;
        let skip = |reader: &mut Reader<'_>, count| {
            let at = reader.position();
            reader.skip(count).map_err(|e| CodecError::at(at, e))
        };
        skip(reader, start.consumed)?;
        if start.is_reversed {
            return Err(CodecError::at(base, Problem::Mutation));
        }
        let mut builder = UpdateBuilder::new(table, layout.clone(), start.key);
        // an empty partition: nothing comes after its key
        let Some(header) = start.header else { return Ok(builder.finish_in_order()) };
        builder.delete_partition(start.deletion);
        builder.set_static(start.static_row.map(|row| row.into_owned().into()));
        self.read_unfiltereds(&layout, &header, reader, &mut builder)?;
        Ok(builder.finish_in_order())
    }

    fn read_unfiltereds(
        &mut self,
        layout: &Layout,
        header: &Header,
        reader: &mut Reader<'_>,
        builder: &mut UpdateBuilder,
    ) -> Result<(), CodecError> {
        self.open = None;
        let mut last_kind = None;
        loop {
            let at = reader.position();
            let failed = |problem: Problem| CodecError::at(at, problem);
            let decoded = self.decoder.unfiltered(layout, header, reader.rest());
            let decoded = decoded.map_err(|e| CodecError { offset: at + e.offset, ..e })?;
            let consumed = match decoded {
                Decoded::NeedMore(wanted) => {
                    let left = reader.remaining();
                    return Err(failed(ReadError::End { wanted, left }.into()));
                }
                Decoded::End { consumed } | Decoded::Nothing { consumed } => consumed,
                Decoded::Unfiltered { unfiltered, consumed } => {
                    let position = unfiltered.position();
                    let last = last_kind
                        .map(|kind| BoundRef::new(kind, ClusteringRef::from_packed(&self.last)));
                    if last.is_some_and(|l| compare(layout, l, position) != Ordering::Less) {
                        return Err(failed(Problem::Order));
                    }
                    last_kind = Some(position.kind);
                    self.last.clear();
                    self.last.extend_from_slice(position.values.as_packed());
                    match unfiltered {
                        Unfiltered::Row(row) => builder.push_in_order(row),
                        Unfiltered::Marker(marker) => {
                            take_marker(&mut self.open, marker, builder).map_err(failed)?;
                        }
                    }
                    consumed
                }
            };
            reader.skip(consumed).map_err(|e| failed(e.into()))?;
            if matches!(decoded, Decoded::End { .. }) {
                break;
            }
        }
        match self.open {
            Some(_) => Err(CodecError::at(reader.position(), Problem::Unbalanced)),
            None => Ok(()),
        }
    }
}

/// Joins markers to ranges.
fn take_marker(
    open: &mut Option<(Bound, Deletion)>,
    marker: MarkerRef<'_>,
    builder: &mut UpdateBuilder,
) -> Result<(), Problem> {
    let kind = marker.bound.kind;
    if kind.is_end() {
        let (start, deletion) = open.take().ok_or(Problem::Unbalanced)?;
        if deletion != marker.end {
            return Err(Problem::Unbalanced);
        }
        let end = marker.bound.with_kind(kind.end_of()).to_owned();
        builder.delete_range(RangeTombstone { start, end, deletion });
    }
    if kind.is_start() {
        if open.is_some() {
            return Err(Problem::Unbalanced);
        }
        *open = Some((marker.bound.with_kind(kind.start_of()).to_owned(), marker.start));
    }
    Ok(())
}
