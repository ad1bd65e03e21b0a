//! Bytes that come one after the other, and how messages are read from them.

use std::io;

use thiserror::Error;
use types::{ReadError, Reader};

/// Bytes that one part of a message may have: a text, a range, the columns of a table.
const PART_BYTES_MAX: usize = 1 << 20;

/// Why no message could be read. The connection is of no use any more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    /// The connection broke, or ended within a message.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Bytes that are no message.
    #[error("{what}: {error}")]
    Malformed {
        /// Of what.
        what: &'static str,
        /// What is wrong with them.
        error: ReadError,
    },
    /// A message that no node sends.
    #[error("{what} of {number}")]
    Impossible {
        /// Of what.
        what: &'static str,
        /// As read.
        number: i64,
    },
    /// A name that means nothing here.
    #[error("unknown {what} '{name}'")]
    Unknown {
        /// Of what.
        what: &'static str,
        /// As read.
        name: String,
    },
    /// The columns of an SSTable.
    #[error("{0}")]
    Header(#[from] sstable::Error),
}

/// Bytes that come one after the other.
#[expect(async_fn_in_trait, reason = "readers run on the shard that they were made on")]
pub trait Input {
    /// Those that have come and are not consumed.
    fn buffered(&self) -> &[u8];

    /// Waits until so many are buffered.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if there are no more; whatever else the connection says.
    async fn fill(&mut self, count: usize) -> io::Result<()>;

    /// So many of those that are buffered are done with.
    fn consume(&mut self, count: usize);

    /// Takes the next bytes, at least one and at most so many, behind those that `out` has: how
    /// many.
    ///
    /// # Errors
    /// As [`Self::fill`].
    async fn take(&mut self, most: u64, out: &mut Vec<u8>) -> io::Result<usize> {
        self.fill(1).await?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let buffered = self.buffered();
        let taken = buffered.get(..most).unwrap_or(buffered);
        out.extend_from_slice(taken);
        let taken = taken.len();
        self.consume(taken);
        Ok(taken)
    }
}

/// Of bytes that are all there.
impl Input for &[u8] {
    fn buffered(&self) -> &[u8] {
        self
    }

    async fn fill(&mut self, count: usize) -> io::Result<()> {
        match self.len() < count {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }

    fn consume(&mut self, count: usize) {
        *self = self.get(count..).unwrap_or_default();
    }
}

/// Reads one part of a message: as often as its bytes come short.
pub(super) async fn part<I: Input, T>(
    input: &mut I,
    what: &'static str,
    read: impl Fn(&mut Reader<'_>) -> Result<T, ReadError>,
) -> Result<T, InputError> {
    loop {
        let bytes = input.buffered();
        let mut reader = Reader::new(bytes);
        match read(&mut reader) {
            Ok(value) => {
                let used = reader.position();
                input.consume(used);
                return Ok(value);
            }
            Err(ReadError::End { wanted, left }) => {
                let needed = (bytes.len() - left).saturating_add(wanted);
                if needed > PART_BYTES_MAX {
                    return Err(InputError::Impossible { what, number: needed as i64 });
                }
                input.fill(needed).await?;
            }
            Err(error) => return Err(InputError::Malformed { what, error }),
        }
    }
}

/// Reads how many of something follow, at most so many.
pub(super) async fn count<I: Input>(
    input: &mut I,
    what: &'static str,
    most: u32,
) -> Result<u32, InputError> {
    let number = part(input, what, |reader| reader.i32()).await?;
    let count = u32::try_from(number).ok().filter(|count| *count <= most);
    count.ok_or(InputError::Impossible { what, number: number.into() })
}
