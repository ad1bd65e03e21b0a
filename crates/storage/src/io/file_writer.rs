//! Files that are written from their beginning to their end: through the page cache, or past it.
//!
//! Flushes and compactions bypass the page cache with what they write of `Data.db`: what readers
//! have in the cache stays there. A piece of 256 KiB is at the device while the next one is
//! gathered.
//!
//! `io_background_access_mode: standard` sends it through the cache, as Cassandra does. It then
//! goes to the device in steps (`File::write_back`), never more than two of a file. A step that
//! fails is a failed sync.

use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::Poll;

use env::{ALIGNMENT, AlignedBuf, Class, Env, File, OpenOptions};

use crate::error::StorageError;

/// Bytes that are gathered before they are written to a file.
pub(crate) const WRITE_BYTES: usize = 256 << 10;
/// Bytes of a file that are sent to the device at a time.
const SEND_BYTES: u64 = WRITE_BYTES as u64;

/// A file that is being written.
pub(crate) struct FileWriter {
    file: File,
    path: PathBuf,
    /// Bytes of it so far.
    length: u64,
    how: How,
}

enum How {
    /// Through the page cache: what of it is on its way to the device.
    Cached { sent: u64 },
    /// Past the page cache.
    Direct(Blocks),
}

/// The bytes of a file, as the device wants them: one piece is gathered while the one before is
/// written.
struct Blocks {
    gathered: AlignedBuf,
    /// Where it goes.
    offset: u64,
    writing: Option<Writing>,
    spare: Option<AlignedBuf>,
}

type Writing = Pin<Box<dyn Future<Output = (io::Result<()>, AlignedBuf)>>>;

impl FileWriter {
    /// Creates a file that is read again soon, or in small parts.
    pub async fn create(env: &Env, path: PathBuf, class: Class) -> Result<Self, StorageError> {
        Self::open(env, path, class, OpenOptions::CREATE_NEW).await
    }

    /// Creates a file that is so large that it would put other files out of the page cache. Where
    /// the file system knows no other way it goes through there all the same.
    pub async fn create_direct(
        env: &Env,
        path: PathBuf,
        class: Class,
    ) -> Result<Self, StorageError> {
        Self::open(env, path, class, OpenOptions::CREATE_NEW.direct()).await
    }

    async fn open(
        env: &Env,
        path: PathBuf,
        class: Class,
        options: OpenOptions,
    ) -> Result<Self, StorageError> {
        let file = File::open(env, &path, options).await;
        let file = file.map_err(|e| StorageError::io("cannot create", &path, e))?;
        let how = match file.is_direct() {
            false => How::Cached { sent: 0 },
            true => How::Direct(Blocks {
                gathered: AlignedBuf::with_capacity(WRITE_BYTES),
                offset: 0,
                writing: None,
                spare: None,
            }),
        };
        Ok(Self { file: file.with_class(class), path, length: 0, how })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that were appended.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes, of which nothing is left.
    pub async fn write(&mut self, bytes: &mut Vec<u8>) -> Result<(), StorageError> {
        let Self { file, path, length, how } = self;
        let written = match how {
            How::Cached { sent } => {
                let (result, buffer) = file.write_all_at(std::mem::take(bytes), *length).await;
                *length += buffer.len() as u64;
                *bytes = buffer;
                match result {
                    Ok(()) => send(file, *length, sent).await,
                    failed => failed,
                }
            }
            How::Direct(blocks) => {
                *length += bytes.len() as u64;
                blocks.append(file, bytes).await
            }
        };
        bytes.clear();
        written.map_err(|e| StorageError::io("cannot write", &*path, e))
    }

    /// Writes what is left; nothing is appended any more. Durable once it was synced.
    pub async fn end(&mut self) -> Result<(), StorageError> {
        let How::Direct(blocks) = &mut self.how else { return Ok(()) };
        let ended = match blocks.end(&self.file).await {
            // the last block was written whole
            Ok(()) => {
                assert!(self.length <= blocks.offset, "all that was appended is in the file");
                self.file.set_len(self.length).await
            }
            failed => failed,
        };
        ended.map_err(|e| StorageError::io("cannot write", &self.path, e))
    }

    /// Makes durable what was written.
    pub async fn sync(&self) -> Result<(), StorageError> {
        let synced = self.file.sync_all().await;
        synced.map_err(|e| StorageError::io("cannot sync", &self.path, e))
    }
}

/// Sends what was written to the device step by step, each when the one before has arrived: the
/// device never has more than two of them, and the sync finds little left to do.
async fn send(file: &File, length: u64, sent: &mut u64) -> io::Result<()> {
    assert!(*sent <= length, "no more is sent to the device than was written: {sent}, {length}");
    while length - *sent >= SEND_BYTES {
        let from = sent.saturating_sub(SEND_BYTES);
        let to = *sent + SEND_BYTES;
        file.write_back(from, to - from).await?;
        *sent = to;
    }
    Ok(())
}

impl Blocks {
    async fn append(&mut self, file: &File, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.gathered.extend_from_slice(rest);
            assert!(taken > 0, "a full buffer is written before more bytes go into it");
            rest = rest.get(taken..).expect("a buffer takes no more bytes than there are");
            if self.gathered.len() == self.gathered.capacity() {
                self.hand_over(file).await?;
            }
        }
        Ok(())
    }

    /// Begins to write what is gathered, once the piece before is written.
    async fn hand_over(&mut self, file: &File) -> io::Result<()> {
        self.written().await?;
        assert!(self.writing.is_none(), "one buffer of a file is written at a time");
        assert!(
            self.offset.is_multiple_of(ALIGNMENT as u64),
            "a buffer is written at the start of a block"
        );
        let next = self.spare.take();
        let next = next.unwrap_or_else(|| AlignedBuf::with_capacity(WRITE_BYTES));
        let piece = std::mem::replace(&mut self.gathered, next);
        let (file, offset) = (file.clone(), self.offset);
        self.offset += piece.len() as u64;
        let mut writing: Writing = Box::pin(async move { file.write_all_at(piece, offset).await });
        // an operation begins when it is first asked for its result
        let begun = poll_fn(|cx| Poll::Ready(writing.as_mut().poll(cx))).await;
        match begun {
            Poll::Ready((result, piece)) => {
                self.take_back(piece);
                result
            }
            Poll::Pending => {
                self.writing = Some(writing);
                Ok(())
            }
        }
    }

    /// Waits for the piece that is being written.
    async fn written(&mut self) -> io::Result<()> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let (result, piece) = writing.await;
        self.take_back(piece);
        result
    }

    fn take_back(&mut self, mut piece: AlignedBuf) {
        piece.clear();
        self.spare = Some(piece);
    }

    async fn end(&mut self, file: &File) -> io::Result<()> {
        let length = self.gathered.len();
        if length > 0 {
            // what an earlier piece left behind the end is cut off with the rest of the block
            self.gathered.set_len(length.next_multiple_of(ALIGNMENT));
            self.hand_over(file).await?;
        }
        self.written().await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::{IpAddr, Ipv4Addr};
    use std::rc::Rc;
    use std::time::Duration;

    use env::Class;
    use env::sim::{World, WorldOptions};
    use proptest::prelude::*;

    use super::{FileWriter, WRITE_BYTES};
    use crate::error::StorageError;

    const PATH: &str = "/f";

    /// The file of which pieces of these lengths were written.
    fn written(all: Vec<u8>, lengths: Vec<usize>, is_direct: bool) -> Vec<u8> {
        let world = World::new(1, WorldOptions::default());
        let node = world.node(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let done = Rc::new(Cell::new(false));
        let ended = Rc::clone(&done);
        world.start::<(), _, _, StorageError>(node, 1, move |env, _| {
            let (all, lengths, ended) = (all.clone(), lengths.clone(), Rc::clone(&ended));
            async move {
                let mut stream = match is_direct {
                    true => FileWriter::create_direct(&env, PATH.into(), Class::Flush).await?,
                    false => FileWriter::create(&env, PATH.into(), Class::Flush).await?,
                };
                let mut rest = all.as_slice();
                for length in lengths {
                    let (piece, behind) = rest.split_at(length);
                    rest = behind;
                    let mut piece = piece.to_vec();
                    stream.write(&mut piece).await?;
                    assert!(piece.is_empty());
                }
                stream.end().await?;
                stream.sync().await?;
                ended.set(true);
                env.terminated().await;
                Ok(())
            }
        });
        world.run_until(|| done.get(), Duration::from_secs(60)).expect("it ends");
        let files = world.disk(node, |disk| disk.files()).unwrap_or_default();
        files.into_iter().find(|(path, _)| path == PATH).map(|(_, bytes)| bytes).expect("a file")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_file_has_the_bytes_that_were_written(
            lengths in prop::collection::vec(0..3 * WRITE_BYTES / 2, 0..6),
            is_direct: bool,
        ) {
            let all: Vec<u8> = (0..lengths.iter().sum()).map(|n: usize| (n % 251) as u8).collect();
            prop_assert!(written(all.clone(), lengths, is_direct) == all);
        }
    }
}
