//! A cursor over the partitions of `Data.db`, fed with uncompressed bytes by the caller.

use std::sync::Arc;

use rows::codec::{CodecError, Decoded, Decoder, Format, Header, read_partition_deletion};
use rows::{Deletion, Layout};
use types::Reader;

use crate::descriptor::Version;
use crate::error::{Error, Result, corrupt};
use crate::statistics::HeaderComponent;
use crate::table::{Table, format};

const NAME: &str = "Data.db";

/// What a decoder used is some of what it was given.
const WITHIN: &str = "a cursor is within the bytes that it received";

/// The start of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStart {
    /// The partition key.
    pub key: Vec<u8>,
    /// The deletion of the whole partition.
    pub deletion: Deletion,
    /// The static row, packed, if it is not empty.
    pub static_row: Option<Vec<u8>>,
}

/// What the cursor came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A row or marker, packed into the caller's buffer.
    Unfiltered,
    /// The end of the partition.
    End,
    /// More bytes are needed: [`DataCursor::wants`] says from where.
    NeedMore,
}

/// What a cursor must know of the data that it reads.
pub trait Shape {
    /// How rows are encoded.
    fn format(&self) -> Format;
    /// The layout of the rows.
    fn layout(&self) -> &Arc<Layout>;
    /// What rows are encoded relative to.
    fn header(&self) -> &Header;
    /// Bytes of the data, uncompressed: it ends there, between two partitions.
    fn uncompressed_length(&self) -> u64;
}

impl Shape for Table {
    fn format(&self) -> Format {
        format(self.descriptor.version)
    }

    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn uncompressed_length(&self) -> u64 {
        self.uncompressed_length()
    }
}

/// The shape of partitions that another node sends out of its SSTable.
#[derive(Debug)]
pub struct StreamShape {
    format: Format,
    layout: Arc<Layout>,
    header: Header,
    length: u64,
}

impl StreamShape {
    /// Of an SSTable of a version with this header; the partitions have so many bytes. A table of
    /// counters says so by its schema.
    ///
    /// # Errors
    /// If the header makes no sense.
    pub fn new(
        version: Version,
        component: &HeaderComponent,
        is_counter: bool,
        length: u64,
    ) -> Result<Self> {
        let layout = Arc::new(component.layout(is_counter)?);
        let format = format(version);
        let header = component.header(format, &layout)?;
        Ok(Self { format, layout, header, length })
    }
}

impl Shape for StreamShape {
    fn format(&self) -> Format {
        self.format
    }

    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn uncompressed_length(&self) -> u64 {
        self.length
    }
}

/// The cursor.
#[derive(Debug)]
pub struct DataCursor<S = Table> {
    shape: Arc<S>,
    decoder: Decoder,
    window: Vec<u8>,
    /// Where the window starts in the uncompressed data.
    start: u64,
    /// Bytes of the window that were used.
    used: usize,
}

impl<S: Shape> DataCursor<S> {
    /// A cursor at a position of the uncompressed data.
    pub fn new(shape: &Arc<S>, position: u64) -> Self {
        Self {
            shape: Arc::clone(shape),
            decoder: Decoder::new(),
            window: Vec::new(),
            start: position,
            used: 0,
        }
    }

    /// What it reads.
    pub fn shape(&self) -> &Arc<S> {
        &self.shape
    }

    /// Where the cursor stands.
    pub fn position(&self) -> u64 {
        self.start + self.used as u64
    }

    /// Moves the cursor.
    pub fn seek(&mut self, position: u64) {
        match position.checked_sub(self.start) {
            Some(ahead) if ahead <= self.window.len() as u64 => self.used = ahead as usize,
            _ => {
                self.window.clear();
                self.start = position;
                self.used = 0;
            }
        }
    }

    /// Where the bytes start that [`DataCursor::feed`] is to be given.
    pub fn wants(&self) -> u64 {
        self.start + self.window.len() as u64
    }

    /// Takes the bytes that follow those it has.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.window.drain(..self.used);
        self.start += self.used as u64;
        self.used = 0;
        self.window.extend_from_slice(bytes);
    }

    fn rest(&self) -> &[u8] {
        self.window.get(self.used..).expect(WITHIN)
    }

    fn need_more<T>(&self) -> Result<Option<T>> {
        if self.wants() >= self.shape.uncompressed_length() {
            return corrupt(NAME, format!("it ends inside the partition at {}", self.position()));
        }
        Ok(None)
    }

    fn codec(&self, error: CodecError) -> Error {
        let at = self.position();
        Error::Corrupt { component: NAME, what: format!("at {at}: {error}") }
    }

    /// The start of a partition, where the cursor stands at one; `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the bytes are not the start of a partition.
    pub fn partition_start(&mut self) -> Result<Option<PartitionStart>> {
        let format = self.shape.format();
        let rest = self.rest();
        let Some(head) = rest.first_chunk::<2>() else { return self.need_more() };
        let key_end = 2 + usize::from(u16::from_be_bytes(*head));
        let Some(key) = rest.get(2..key_end) else { return self.need_more() };
        let key = key.to_vec();
        let after = rest.get(key_end..).expect("what follows a key begins where it ends");
        let mut reader = Reader::new(after);
        // 12 bytes in every format that has them all
        if after.len() < 12 && self.wants() < self.shape.uncompressed_length() {
            return Ok(None);
        }
        let deletion = read_partition_deletion(format, &mut reader).map_err(|e| self.codec(e))?;
        let mut length = key_end + reader.position();
        let mut static_row = None;
        if !self.shape.layout().statics.is_empty() {
            let bytes = self.window.get(self.used + length..).expect(WITHIN);
            let (layout, header) = (self.shape.layout(), self.shape.header());
            match self.decoder.static_row(layout, header, bytes) {
                Err(error) => return Err(self.codec(error)),
                Ok(Decoded::NeedMore(_)) => return self.need_more(),
                Ok(Decoded::Unfiltered { unfiltered, consumed }) => {
                    let mut packed = Vec::new();
                    unfiltered.pack(&mut packed);
                    static_row = Some(packed);
                    length += consumed;
                }
                Ok(Decoded::Nothing { consumed }) => length += consumed,
                Ok(Decoded::End { .. }) => return corrupt(NAME, "a static row is missing"),
            }
        }
        self.used += length;
        assert!(self.used <= self.window.len(), "{WITHIN}");
        let empty = |row: &Vec<u8>| rows::RowRef::from_packed(row).is_empty();
        let static_row = static_row.filter(|row| !empty(row));
        Ok(Some(PartitionStart { key, deletion, static_row }))
    }

    /// Decodes the next row or marker of the partition into `out`, packed.
    ///
    /// # Errors
    /// If the bytes are neither.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<Next> {
        loop {
            let bytes = self.window.get(self.used..).expect(WITHIN);
            match self.decoder.unfiltered(self.shape.layout(), self.shape.header(), bytes) {
                Err(error) => return Err(self.codec(error)),
                Ok(Decoded::Unfiltered { unfiltered, consumed }) => {
                    out.clear();
                    unfiltered.pack(out);
                    self.used += consumed;
                    return Ok(Next::Unfiltered);
                }
                Ok(Decoded::Nothing { consumed }) => self.used += consumed,
                Ok(Decoded::End { consumed }) => {
                    self.used += consumed;
                    return Ok(Next::End);
                }
                Ok(Decoded::NeedMore(_)) => {
                    self.need_more::<()>()?;
                    return Ok(Next::NeedMore);
                }
            }
        }
    }
}
