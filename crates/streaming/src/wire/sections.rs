//! The bytes of sections on the wire, on both sides.
//!
//! ```text
//! compressed    chunks as they lie in the file, each with its checksum of 4 bytes behind it; each
//!               once, though sections may share it
//! otherwise     blocks: bytes of LZ4, bytes of data (4 each), LZ4; none has bytes of two sections
//! ```

use sstable::checksum::verify;
use sstable::compressor::{Codec, Compressor};
use storage::SectionBytes;
use thiserror::Error;

use super::file::{Compression, FileHeader, Section};
use super::input::{Input, InputError};

/// Bytes of data that are in a block at most. Cassandra's nodes send those of a chunk of `CRC.db`,
/// which is 64 KiB.
const BLOCK_BYTES_MAX: usize = 16 << 20;
/// Bytes of data that a block that this node sends has at most.
pub const BLOCK_BYTES: usize = 64 << 10;
/// Bytes of a chunk's checksum.
const CHECKSUM_BYTES: usize = 4;

/// Why sections did not come.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SectionError {
    /// The connection.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A chunk.
    #[error(transparent)]
    Chunk(#[from] sstable::Error),
    /// A block.
    #[error("a block of {stored} bytes cannot be decompressed to {plain} bytes")]
    Block {
        /// Bytes of LZ4, as it says.
        stored: i32,
        /// Bytes of data, as it says.
        plain: i32,
    },
    /// There are fewer chunks than the sections need.
    #[error("there are fewer chunks than the sections need")]
    Chunks,
}

impl From<std::io::Error> for SectionError {
    fn from(error: std::io::Error) -> Self {
        Self::Input(error.into())
    }
}

/// Sections that come.
pub struct Sections<'a, I> {
    input: &'a mut I,
    sections: std::vec::IntoIter<Section>,
    /// What is left of the present section.
    present: Option<Section>,
    /// Bytes that came, as [`FileHeader::bytes`] counts them.
    came: u64,
    form: Form,
}

impl<I> std::fmt::Debug for Sections<'_, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sections({:?})", self.present)
    }
}

enum Form {
    Chunks(Box<Chunks>),
    Blocks,
}

struct Chunks {
    codec: Codec,
    lengths: std::vec::IntoIter<(u64, u32)>,
    chunk_length: u32,
    max_compressed_length: u32,
    /// Where the last chunk starts, in uncompressed bytes, and what it is.
    last: Option<(u64, Vec<u8>)>,
    stored: Vec<u8>,
}

impl<'a, I: Input> Sections<'a, I> {
    /// Those that a file's header names.
    ///
    /// # Errors
    /// If nobody here knows the compressor.
    pub fn new(header: &FileHeader, input: &'a mut I) -> Result<Self, SectionError> {
        let form = match &header.compression {
            Some(compression) => Form::Chunks(Box::new(Chunks::new(compression)?)),
            None => Form::Blocks,
        };
        let sections = header.sections.clone().into_iter();
        Ok(Self { input, sections, present: None, came: 0, form })
    }

    /// Bytes that have come, as [`FileHeader::bytes`] counts them.
    pub fn came(&self) -> u64 {
        self.came
    }
}

impl<I: Input> SectionBytes for Sections<'_, I> {
    type Error = SectionError;

    async fn next(&mut self) -> Result<Vec<u8>, SectionError> {
        let section = loop {
            match self.present.filter(|section| section.bytes() > 0) {
                Some(section) => break section,
                None => match self.sections.next() {
                    Some(next) => self.present = Some(next),
                    None => return Ok(Vec::new()),
                },
            }
        };
        let bytes = match &mut self.form {
            Form::Chunks(chunks) => {
                let (bytes, came) = chunks.next(self.input, section).await?;
                self.came += came;
                bytes
            }
            Form::Blocks => {
                let bytes = block(self.input).await?;
                self.came += bytes.len() as u64;
                bytes
            }
        };
        // a block of a section has nothing of the next one
        if bytes.is_empty() || bytes.len() as u64 > section.bytes() {
            let plain = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
            return Err(SectionError::Block { stored: 0, plain });
        }
        self.present = Some(Section { from: section.from + bytes.len() as u64, ..section });
        Ok(bytes)
    }
}

impl Chunks {
    fn new(compression: &Compression) -> Result<Self, SectionError> {
        let options = compression.options.iter().cloned().collect();
        Ok(Self {
            codec: Codec::new(Compressor::parse(&compression.class, &options)?),
            lengths: compression.chunks.clone().into_iter(),
            chunk_length: compression.chunk_length,
            max_compressed_length: compression.max_compressed_length,
            last: None,
            stored: Vec::new(),
        })
    }

    /// What the chunk that holds a section's start has of it, and how many bytes came for that.
    async fn next<I: Input>(
        &mut self,
        input: &mut I,
        section: Section,
    ) -> Result<(Vec<u8>, u64), SectionError> {
        let start = section.from & !u64::from(self.chunk_length - 1);
        let mut came = 0;
        if self.last.as_ref().is_none_or(|last| last.0 != start) {
            self.last = Some((start, self.read(input).await?));
            came = self.stored.len() as u64;
        }
        let Some((_, chunk)) = &self.last else { return Ok((Vec::new(), came)) };
        let from = (section.from - start) as usize;
        let to = (section.to - start).min(chunk.len() as u64) as usize;
        Ok((chunk.get(from..to).unwrap_or_default().to_vec(), came))
    }

    async fn read<I: Input>(&mut self, input: &mut I) -> Result<Vec<u8>, SectionError> {
        let (_, length) = self.lengths.next().ok_or(SectionError::Chunks)?;
        let most = self.chunk_length as usize;
        let is_raw = length >= self.max_compressed_length;
        // a compressor may make a chunk somewhat larger
        if length as usize > if is_raw { most } else { 2 * most + BLOCK_BYTES } {
            return Err(SectionError::Chunks);
        }
        self.stored.clear();
        let whole = length as usize + CHECKSUM_BYTES;
        while self.stored.len() < whole {
            let left = (whole - self.stored.len()) as u64;
            input.take(left, &mut self.stored).await?;
        }
        let (body, crc) =
            self.stored.split_last_chunk::<CHECKSUM_BYTES>().ok_or(SectionError::Chunks)?;
        verify(
            "Data.db",
            || "a chunk that was received".to_owned(),
            body,
            u32::from_be_bytes(*crc),
        )?;
        if is_raw {
            return Ok(body.to_vec());
        }
        let mut plain = Vec::new();
        self.codec.decompress_up_to(body, most, &mut plain)?;
        Ok(plain)
    }
}

/// Reads a block.
async fn block<I: Input>(input: &mut I) -> Result<Vec<u8>, SectionError> {
    input.fill(2 * size_of::<i32>()).await?;
    let mut reader = types::Reader::new(input.buffered());
    let what = "a block";
    let malformed = |error| InputError::Malformed { what, error };
    let (stored, plain) = (reader.i32().map_err(malformed)?, reader.i32().map_err(malformed)?);
    input.consume(2 * size_of::<i32>());
    let refused = || SectionError::Block { stored, plain };
    let most = lz4_flex::block::get_maximum_output_size(BLOCK_BYTES_MAX);
    let length = usize::try_from(stored).ok().filter(|length| *length <= most);
    let length = length.ok_or_else(refused)?;
    let room = usize::try_from(plain).ok().filter(|room| *room <= BLOCK_BYTES_MAX);
    let room = room.ok_or_else(refused)?;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let left = (length - bytes.len()) as u64;
        input.take(left, &mut bytes).await?;
    }
    let mut out = vec![0; room];
    match lz4_flex::block::decompress_into(&bytes, &mut out) {
        Ok(written) if written == room => Ok(out),
        _ => Err(refused()),
    }
}

/// Appends a block of data, of at most [`BLOCK_BYTES`].
pub fn put_block(data: &[u8], out: &mut Vec<u8>) {
    assert!(data.len() <= BLOCK_BYTES, "a block has the bytes of a chunk at most");
    let header = out.len();
    out.extend_from_slice(&[0; 8]);
    let body = out.len();
    out.resize(body + lz4_flex::block::get_maximum_output_size(data.len()), 0);
    let room = out.get_mut(body..).unwrap_or_default();
    let written = lz4_flex::block::compress_into(data, room);
    let written = written.expect("the room that LZ4 asks for is enough");
    out.truncate(body + written);
    let lengths = [(written as u32).to_be_bytes(), (data.len() as u32).to_be_bytes()].concat();
    out.get_mut(header..body).unwrap_or_default().copy_from_slice(&lengths);
}
