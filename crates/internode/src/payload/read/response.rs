//! The answer: a digest, or data.
//!
//! ```text
//! digest behind its length; if that is 0: digest of repaired data behind its length, is it
//! conclusive?, data behind its length
//! data: false, for each partition true and the partition, false
//! ```

use std::cmp::Ordering;

use rows::codec::{
    CodecError, Decoded, Decoder, EncodeError, Encoder, Header, PartitionStart, Problem, Selection,
    read_partition_start, write_empty_partition, write_partition_end, write_partition_start,
};
use rows::{Deletion, Layout, Unfiltered, compare};
use types::{ReadError, Reader, WriteBytes};

use crate::payload::PayloadError;

/// Bytes of a digest, MD5's.
pub const DIGEST_BYTES: usize = 16;

/// What a replica knows of that part of its data which is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairedDigest<'a> {
    /// Its digest; empty where nobody asked.
    pub digest: &'a [u8],
    /// Was no other data in the way?
    pub conclusive: bool,
}

impl RepairedDigest<'_> {
    /// Where nobody asked.
    pub const NONE: RepairedDigest<'static> = RepairedDigest { digest: &[], conclusive: true };
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadResponse<'a> {
    /// The digest of the data.
    Digest(&'a [u8]),
    /// The data: see [`DataReader`].
    Data {
        /// Of its repaired part.
        repaired: RepairedDigest<'a>,
        /// Partitions.
        data: &'a [u8],
    },
}

impl<'a> ReadResponse<'a> {
    /// Reads it.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        let digest = reader.vint_bytes()?;
        if !digest.is_empty() {
            return Ok(Self::Digest(digest));
        }
        let repaired = RepairedDigest { digest: reader.vint_bytes()?, conclusive: reader.bool()? };
        Ok(Self::Data { repaired, data: reader.vint_bytes()? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Digest(digest) => out.put_vint_bytes(digest),
            Self::Data { repaired, data } => {
                out.put_uvint(0);
                out.put_vint_bytes(repaired.digest);
                out.put_bool(repaired.conclusive);
                out.put_vint_bytes(data);
            }
        }
    }
}

/// Writes the data of an answer, partition by partition.
#[derive(Debug)]
pub struct DataWriter<'t> {
    layout: &'t Layout,
    /// Of all that the read fetches.
    fetched: &'t Header,
    encoder: Encoder,
    out: Vec<u8>,
}

impl<'t> DataWriter<'t> {
    /// To the end of `out`. `fetched` is [`ColumnFilter::header`](super::ColumnFilter::header).
    pub fn new(layout: &'t Layout, fetched: &'t Header, mut out: Vec<u8>) -> Self {
        out.put_bool(false);
        Self { layout, fetched, encoder: Encoder::new(), out }
    }

    /// A partition without anything in it.
    pub fn empty_partition(&mut self, key: &[u8], is_reversed: bool) {
        self.out.put_bool(true);
        write_empty_partition(key, is_reversed, &mut self.out);
    }

    /// A partition's start. What follows are its unfiltereds, with the same header, and its end.
    pub fn start(
        &mut self,
        header: &Header,
        start: &PartitionStart<'_>,
    ) -> Result<(), EncodeError> {
        self.out.put_bool(true);
        let selection = Selection::Fetched(self.fetched);
        let (encoder, out) = (&mut self.encoder, &mut self.out);
        write_partition_start(self.layout, header, selection, start, encoder, out)
    }

    /// A row or marker.
    pub fn unfiltered(
        &mut self,
        header: &Header,
        unfiltered: Unfiltered<'_>,
    ) -> Result<(), EncodeError> {
        self.encoder.unfiltered(self.layout, header, unfiltered, 0, &mut self.out)
    }

    /// The end of a partition.
    pub fn end(&mut self) {
        write_partition_end(&mut self.out);
    }

    /// Bytes written so far.
    pub fn size(&self) -> usize {
        self.out.len()
    }

    /// The data.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.put_bool(false);
        self.out
    }
}

/// Reads the data of an answer, partition by partition and row by row. What is out of order is
/// refused: no merge is to see it.
#[derive(Debug)]
pub struct DataReader<'t, 'a> {
    layout: &'t Layout,
    fetched: &'t Header,
    reader: Reader<'a>,
    decoder: Decoder,
    /// Of the partition that is being read.
    header: Option<Header>,
    is_reversed: bool,
    /// The last row or marker of that partition, packed; nothing at its start.
    last: Vec<u8>,
    next: Vec<u8>,
    /// The deletion of the range that is open.
    open: Option<Deletion>,
}

impl<'t, 'a> DataReader<'t, 'a> {
    /// Of the data of an answer to a read that fetched those columns.
    pub fn new(layout: &'t Layout, fetched: &'t Header, data: &'a [u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(data);
        reader.bool()?; // of Thrift's, once
        Ok(Self {
            layout,
            fetched,
            reader,
            decoder: Decoder::new(),
            header: None,
            is_reversed: false,
            last: Vec::new(),
            next: Vec::new(),
            open: None,
        })
    }

    /// The next partition; what was not read of the one before is passed over.
    pub fn next_partition(&mut self) -> Result<Option<PartitionStart<'a>>, PayloadError> {
        while self.next_unfiltered()?.is_some() {}
        if !self.reader.bool()? {
            self.reader.finish()?;
            return Ok(None);
        }
        let selection = Selection::Fetched(self.fetched);
        let rest = self.reader.rest();
        let start = read_partition_start(self.layout, selection, rest, &mut self.decoder);
        let start = start.map_err(|error| self.placed(error))?;
        self.reader.skip(start.consumed)?;
        self.header = start.header.clone();
        self.is_reversed = start.is_reversed;
        self.last.clear();
        self.open = None;
        Ok(Some(start))
    }

    /// The next row or marker of the partition.
    pub fn next_unfiltered(&mut self) -> Result<Option<Unfiltered<'_>>, PayloadError> {
        loop {
            let Some(header) = &self.header else { return Ok(None) };
            let rest = self.reader.rest();
            let (consumed, is_found) = match self.decoder.unfiltered(self.layout, header, rest) {
                Err(error) => return Err(self.placed(error)),
                Ok(Decoded::NeedMore(wanted)) => {
                    return Err(ReadError::End { wanted, left: rest.len() }.into());
                }
                Ok(Decoded::End { consumed }) => {
                    self.reader.skip(consumed)?;
                    self.header = None;
                    return match self.open {
                        Some(_) => Err(Problem::Unbalanced.into()),
                        None => Ok(None),
                    };
                }
                Ok(Decoded::Nothing { consumed }) => (consumed, false),
                Ok(Decoded::Unfiltered { unfiltered, consumed }) => {
                    self.next.clear();
                    unfiltered.pack(&mut self.next);
                    (consumed, true)
                }
            };
            self.reader.skip(consumed)?;
            if is_found {
                self.check()?;
                std::mem::swap(&mut self.last, &mut self.next);
                return Ok(Some(Unfiltered::from_packed(&self.last)));
            }
        }
    }

    /// What comes next stands behind what came last, and ranges open and close in turn.
    fn check(&mut self) -> Result<(), Problem> {
        let next = Unfiltered::from_packed(&self.next);
        if !self.last.is_empty() {
            let last = Unfiltered::from_packed(&self.last).position();
            let order = compare(self.layout, last, next.position());
            let wanted = if self.is_reversed { Ordering::Greater } else { Ordering::Less };
            if order != wanted {
                return Err(Problem::Order);
            }
        }
        if let Unfiltered::Marker(marker) = next {
            let (closes, opens) = (marker.closes(self.is_reversed), marker.opens(self.is_reversed));
            if closes != self.open {
                return Err(Problem::Unbalanced);
            }
            self.open = opens;
        }
        Ok(())
    }

    fn placed(&self, error: CodecError) -> PayloadError {
        CodecError { offset: self.reader.position() + error.offset, ..error }.into()
    }
}
