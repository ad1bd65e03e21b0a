//! Decodes rows and markers into packed form.

use super::columns::{HeaderColumn, PlaceSet};
use super::deletion::{checked_expiry, read_deletion};
use super::error::{CodecError, Problem};
use super::flags::*;
use super::header::Header;
use super::prefix::{read_bound, read_clustering};
use super::{Format, MAX_SIZE};
use crate::builder::RowBuilder;
use crate::cell::CellRef;
use crate::clustering::{BoundRef, ClusteringBuilder};
use crate::layout::Layout;
use crate::marker::{MarkerRef, Unfiltered};
use crate::row::RowRef;
use crate::time::{Deletion, Liveness, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use types::{ReadError, Reader};

/// What a decoder found at the start of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A row or marker.
    Unfiltered {
        /// The row or marker, good until the next call.
        unfiltered: Unfiltered<'a>,
        /// Bytes of the input it took.
        consumed: usize,
    },
    /// A row of which nothing is left, since its columns were dropped: go on behind it.
    Nothing {
        /// Bytes of the input it took.
        consumed: usize,
    },
    /// The end of the partition.
    End {
        /// Bytes of the input it took.
        consumed: usize,
    },
    /// The input ends within the unfiltered: ask again with at least this many bytes from its
    /// start. Where there are not as many, the input is cut short.
    NeedMore(usize),
}

/// What a decoder can tell of an SSTable's unfiltered without decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peeked<'a> {
    /// A row or marker.
    At {
        /// Where it stands.
        position: BoundRef<'a>,
        /// Its bytes from its start: what to step over.
        len: usize,
    },
    /// The end of the partition, one byte.
    End,
    /// As [`Decoded::NeedMore`].
    NeedMore(usize),
}

enum Found {
    Row,
    Marker,
    Nothing,
    End,
}

/// Decodes unfiltereds one after another; keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    builder: RowBuilder,
    clustering: ClusteringBuilder,
    marker: Vec<u8>,
    present: PlaceSet,
}

impl Decoder {
    /// A decoder with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the unfiltered at the start of `bytes`.
    pub fn unfiltered<'a>(
        &'a mut self,
        layout: &Layout,
        header: &Header,
        bytes: &[u8],
    ) -> Result<Decoded<'a>, CodecError> {
        self.decode(layout, header, bytes, false)
    }

    /// Decodes the static row at the start of `bytes`.
    pub fn static_row<'a>(
        &'a mut self,
        layout: &Layout,
        header: &Header,
        bytes: &[u8],
    ) -> Result<Decoded<'a>, CodecError> {
        self.decode(layout, header, bytes, true)
    }

    fn decode<'a>(
        &'a mut self,
        layout: &Layout,
        header: &Header,
        bytes: &[u8],
        is_static: bool,
    ) -> Result<Decoded<'a>, CodecError> {
        let mut reader = Reader::new(bytes);
        let found = self.read(layout, header, &mut reader, is_static);
        let consumed = reader.position();
        assert!(consumed <= bytes.len(), "a decoder takes no more bytes than there are");
        match found {
            Err(problem) => need_more_or(problem, consumed).map(Decoded::NeedMore),
            Ok(Found::End) => Ok(Decoded::End { consumed }),
            Ok(Found::Nothing) => Ok(Decoded::Nothing { consumed }),
            Ok(Found::Row) => {
                let unfiltered = Unfiltered::Row(self.builder.finish_row(layout));
                Ok(Decoded::Unfiltered { unfiltered, consumed })
            }
            Ok(Found::Marker) => {
                let unfiltered = Unfiltered::Marker(MarkerRef::from_packed(&self.marker));
                Ok(Decoded::Unfiltered { unfiltered, consumed })
            }
        }
    }

    /// Tells where the unfiltered at the start of `bytes` stands and how long it is. Of SSTables
    /// only: messages do not say sizes.
    pub fn peek<'a>(
        &'a mut self,
        layout: &Layout,
        header: &Header,
        bytes: &[u8],
    ) -> Result<Peeked<'a>, CodecError> {
        assert!(header.format.has_sizes(), "only rows of SSTables say their sizes");
        let mut reader = Reader::new(bytes);
        let peeked = self.read_position(layout, &mut reader);
        let at = reader.position();
        match peeked {
            Err(problem) => need_more_or(problem, at).map(Peeked::NeedMore),
            Ok(None) => Ok(Peeked::End),
            Ok(Some((kind, size))) => {
                let values = self.clustering.finish();
                let position = kind.map_or(values.into(), |kind| BoundRef::new(kind, values));
                Ok(Peeked::At { position, len: at + size })
            }
        }
    }

    fn read_position(
        &mut self,
        layout: &Layout,
        reader: &mut Reader<'_>,
    ) -> Result<Option<(Option<crate::BoundKind>, usize)>, Problem> {
        let flags = reader.u8()?;
        if flags & END_OF_PARTITION != 0 {
            return Ok(None);
        }
        if flags & EXTENSION != 0 && reader.u8()? & IS_STATIC != 0 {
            return Err(Problem::Flags(flags));
        }
        let kind = if flags & IS_MARKER != 0 {
            Some(read_bound(layout, reader, &mut self.clustering)?.kind)
        } else {
            self.clustering.clear();
            read_clustering(layout, layout.clustering.len(), reader, &mut self.clustering)?;
            None
        };
        Ok(Some((kind, read_size(reader)?)))
    }

    fn read(
        &mut self,
        layout: &Layout,
        header: &Header,
        reader: &mut Reader<'_>,
        is_static: bool,
    ) -> Result<Found, Problem> {
        let flags = reader.u8()?;
        if flags & END_OF_PARTITION != 0 && !is_static {
            return Ok(Found::End);
        }
        let extended = if flags & EXTENSION != 0 { reader.u8()? } else { 0 };
        if flags & IS_MARKER != 0 && !is_static {
            return self.read_marker(layout, header, reader);
        }
        let impossible = flags & (END_OF_PARTITION | IS_MARKER) != 0;
        if impossible || (extended & IS_STATIC != 0) != is_static {
            return Err(Problem::Flags(flags));
        }
        if is_static {
            self.builder.start_static();
        } else {
            self.clustering.clear();
            read_clustering(layout, layout.clustering.len(), reader, &mut self.clustering)?;
            self.builder.start_row(self.clustering.finish());
        }
        self.sized(header.format, reader, |this, reader| {
            this.read_row_body(layout, header, reader, flags, extended)
        })?;
        let is_empty = RowRef::from_packed(self.builder.finish(layout)).is_empty();
        Ok(if is_empty { Found::Nothing } else { Found::Row })
    }

    /// Reads a body that in SSTables is preceded by its size, and must have it.
    fn sized<'i>(
        &mut self,
        format: Format,
        reader: &mut Reader<'i>,
        read: impl FnOnce(&mut Self, &mut Reader<'i>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        if !format.has_sizes() {
            return read(self, reader);
        }
        let said = read_size(reader)?;
        let mut body = Reader::new(reader.bytes(said)?);
        let wrong = |found| Problem::Size { said, found };
        let result = body.uvint().map_err(Problem::from).and_then(|_| read(self, &mut body));
        match result {
            // What ends within its body will not become whole with more input.
            Err(Problem::Read(ReadError::End { wanted, .. })) => {
                Err(wrong(body.position().saturating_add(wanted)))
            }
            Err(problem) => Err(problem),
            Ok(()) if !body.is_empty() => Err(wrong(body.position())),
            Ok(()) => Ok(()),
        }
    }

    fn read_marker(
        &mut self,
        layout: &Layout,
        header: &Header,
        reader: &mut Reader<'_>,
    ) -> Result<Found, Problem> {
        let kind = read_bound(layout, reader, &mut self.clustering)?.kind;
        let (mut first, mut second) = (Deletion::LIVE, Deletion::LIVE);
        self.sized(header.format, reader, |_, reader| {
            first = read_deletion(header.format, &header.stats, reader)?;
            if kind.is_boundary() {
                second = read_deletion(header.format, &header.stats, reader)?;
            }
            Ok(())
        })?;
        let bound = BoundRef::new(kind, self.clustering.finish());
        let marker = match kind.is_boundary() {
            true => MarkerRef::boundary(bound, first, second),
            false => MarkerRef::bound(bound, first),
        };
        self.marker.clear();
        marker.pack(&mut self.marker);
        Ok(Found::Marker)
    }

    fn read_row_body(
        &mut self,
        layout: &Layout,
        header: &Header,
        reader: &mut Reader<'_>,
        flags: u8,
        extended: u8,
    ) -> Result<(), Problem> {
        let liveness = read_liveness(header, reader, flags)?;
        if let Some(liveness) = liveness {
            self.builder.liveness(liveness);
        }
        if flags & HAS_DELETION != 0 {
            let deletion = read_deletion(header.format, &header.stats, reader)?;
            if extended & HAS_SHADOWABLE_DELETION != 0 {
                self.builder.shadowable_deletion(deletion);
            } else {
                self.builder.deletion(deletion);
            }
        }
        let is_static = extended & IS_STATIC != 0;
        let columns = header.columns(is_static);
        if flags & HAS_ALL_COLUMNS != 0 {
            self.present.fill(columns.len());
        } else {
            self.present.read_subset(columns.len(), reader)?;
        }
        for place in self.present.iter() {
            let column = columns.columns.get(place);
            let column = column.expect("a subset of the header's columns names none beyond them");
            let source = CellSource { header, column, liveness };
            if column.complex {
                let with_deletion = flags & HAS_COMPLEX_DELETION != 0;
                source.read_complex(layout, is_static, with_deletion, reader, &mut self.builder)?;
            } else if let Some(cell) = source.read_cell(reader)? {
                self.builder.cell_in_order(&cell);
            }
        }
        Ok(())
    }
}

fn read_size(reader: &mut Reader<'_>) -> Result<usize, Problem> {
    let size = usize::try_from(reader.uvint()?).unwrap_or(usize::MAX);
    if size > MAX_SIZE { Err(Problem::TooLarge(size)) } else { Ok(size) }
}

fn read_liveness(
    header: &Header,
    reader: &mut Reader<'_>,
    flags: u8,
) -> Result<Option<Liveness>, Problem> {
    if flags & HAS_TIMESTAMP == 0 {
        return Ok(None);
    }
    let timestamp = header.stats.timestamp(reader)?;
    if flags & HAS_TTL == 0 {
        return Ok(Some(Liveness::new(timestamp)));
    }
    let ttl = header.stats.ttl(reader)?;
    if ttl < 0 {
        return Err(Problem::Ttl(ttl));
    }
    let expires_at = checked_expiry(header.format, header.stats.seconds(reader)?, ttl);
    Ok(Some(Liveness::expiring(timestamp, ttl, expires_at)))
}

/// What the cells of one column of one row are read with.
struct CellSource<'h> {
    header: &'h Header,
    column: &'h HeaderColumn,
    liveness: Option<Liveness>,
}

impl CellSource<'_> {
    /// Reads a cell; `None` if its column was dropped since.
    #[inline(always)]
    fn read_cell<'i>(&self, reader: &mut Reader<'i>) -> Result<Option<CellRef<'i>>, Problem> {
        let stats = &self.header.stats;
        let flags = reader.u8()?;
        let timestamp = match flags & CELL_ROW_TIMESTAMP {
            0 => stats.timestamp(reader)?,
            _ => self.liveness.map_or(NO_TIMESTAMP, |liveness| liveness.timestamp),
        };
        let (mut ttl, mut seconds) = (NO_TTL, NO_DELETION_TIME);
        if flags & CELL_ROW_TTL != 0 {
            if let Some(liveness) = &self.liveness {
                (ttl, seconds) = (liveness.ttl, liveness.expires_at);
            }
        } else if flags & (CELL_DELETED | CELL_EXPIRING) != 0 {
            seconds = stats.seconds(reader)?;
            if flags & CELL_EXPIRING != 0 {
                ttl = stats.ttl(reader)?;
            }
            if ttl < 0 {
                return Err(Problem::Ttl(ttl));
            }
            seconds = checked_expiry(self.header.format, seconds, ttl);
        }
        let path = if self.column.complex { Some(reader.vint_bytes()?) } else { None };
        let value = match self.column.fixed_len {
            _ if flags & CELL_EMPTY_VALUE != 0 => &[],
            Some(length) => reader.bytes(length)?,
            None => reader.vint_bytes()?,
        };
        let dropped = self.column.dropped_at.is_some_and(|at| timestamp <= at);
        let column = self.column.column.filter(|_| !dropped);
        Ok(column.map(|column| CellRef::from_parts(column, path, timestamp, ttl, seconds, value)))
    }

    fn read_complex(
        &self,
        layout: &Layout,
        is_static: bool,
        with_deletion: bool,
        reader: &mut Reader<'_>,
        builder: &mut RowBuilder,
    ) -> Result<(), Problem> {
        let mut deletion = Deletion::LIVE;
        if with_deletion {
            deletion = read_deletion(self.header.format, &self.header.stats, reader)?;
            let dropped_at = self.column.dropped_at.unwrap_or(NO_TIMESTAMP);
            if let Some(column) = self.column.column
                && deletion.marked_for_delete_at > dropped_at
            {
                builder.cell_in_order(&CellRef::complex_deletion(column, deletion));
            }
        }
        // A cell takes two bytes at least: flags and the length of its path.
        let count = reader.count(2)?;
        let path_type = self.column.column.and_then(|column| layout.path_type(is_static, column));
        let mut last: Option<&[u8]> = None;
        for _ in 0..count {
            let Some(cell) = self.read_cell(reader)? else { continue };
            if !deletion.is_live() && cell.timestamp < deletion.marked_for_delete_at {
                continue;
            }
            let path = cell.path.expect("a cell of a complex column is read with its path");
            if !last.is_none_or(|last| path_type.is_some_and(|ty| ty.compare(last, path).is_lt())) {
                builder.expect_disorder();
            }
            builder.cell_in_order(&cell);
            last = Some(path);
        }
        Ok(())
    }
}

/// The bytes that are needed, if more would help; else the error.
fn need_more_or(problem: Problem, at: usize) -> Result<usize, CodecError> {
    match problem {
        Problem::Read(ReadError::End { wanted, .. }) => {
            let needed = at.saturating_add(wanted);
            if needed > MAX_SIZE {
                return Err(CodecError::at(at, Problem::TooLarge(needed)));
            }
            Ok(needed)
        }
        problem => Err(CodecError::at(at, problem)),
    }
}
