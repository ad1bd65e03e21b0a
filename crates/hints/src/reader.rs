//! A file, page by page, from any place on where a hint ended (`HintsReader`).
//!
//! What cannot be read is passed over up to the next place where a record begins. At the end of a
//! file that was not closed that is what a crash left of hints which nobody was promised; elsewhere
//! it is damage, and counted. (Cassandra's reader ends at the first length that is damaged.)

use std::io;
use std::rc::Rc;

use env::{Class, Env, File, OpenOptions};
use sstable::compressor::Codec;

use crate::block;
use crate::file::HintFile;
use crate::record::{self, Found, Hint};

/// Bytes that are read at once (`HintsReader.PAGE_SIZE`).
pub const PAGE_BYTES: usize = 512 << 10;
/// Bytes in which a record's length and its checksum may be cut off.
const CUT_BYTES: usize = 7;

/// A hint of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageHint {
    body: Vec<u8>,
    /// Where to go on when all up to this one are delivered. Of a compressed file that is the
    /// block's beginning, but for the last of a block.
    pub end: u64,
}

impl PageHint {
    /// The hint.
    pub fn hint(&self) -> Hint<'_> {
        Hint::read(&self.body).unwrap_or(Hint { created: 0, gc_grace: 0, mutation: &[] })
    }

    /// As it is written in files and sent: time, `gc_grace_seconds`, mutation.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Some hints that follow each other.
#[derive(Debug, Default)]
pub struct Page {
    /// They.
    pub hints: Vec<PageHint>,
    /// Bytes that were passed over since they are damaged.
    pub damaged: u64,
    /// Where the next page begins: at the end, there is none yet.
    pub next: u64,
}

/// Reads a file.
pub struct Reader {
    data: Rc<HintFile>,
    file: File,
    at: u64,
    /// Bytes passed over, of which is not known yet whether they are a torn end.
    skipped: u64,
    codec: Option<Codec>,
}

impl Reader {
    pub(crate) async fn open(env: &Env, data: &Rc<HintFile>, at: u64) -> io::Result<Self> {
        let file = File::open(env, data.path(), OpenOptions::READ).await?;
        let codec = data.descriptor.compression.as_ref().map(|compression| compression.codec());
        let (data, file) = (Rc::clone(data), file.with_class(Class::Streaming));
        Ok(Self { data, file, at, skipped: 0, codec })
    }

    /// The next hints: none where the file ends for now.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn page(&mut self) -> io::Result<Page> {
        let mut page = Page::default();
        let mut wanted = PAGE_BYTES;
        while page.hints.is_empty() {
            let left = self.data.len().saturating_sub(self.at);
            if left == 0 {
                break;
            }
            match self.codec.take() {
                Some(mut codec) => {
                    let read = self.block(left, &mut codec, &mut page).await;
                    self.codec = Some(codec);
                    read?;
                }
                None => wanted = self.plain(left, wanted, &mut page).await?,
            }
        }
        if self.data.is_closed.get() {
            page.damaged += std::mem::take(&mut self.skipped);
        }
        page.next = self.at;
        Ok(page)
    }

    async fn read(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let (result, bytes) = self.file.read_exact_at(Vec::new(), at, len).await;
        result.map(|()| bytes)
    }

    /// Records as they are. Answers how many bytes to read the next time, where these were too few
    /// for one.
    async fn plain(&mut self, left: u64, wanted: usize, page: &mut Page) -> io::Result<usize> {
        let here = usize::try_from(left).unwrap_or(usize::MAX);
        let bytes = self.read(self.at, here.min(wanted)).await?;
        let Walk { place, wanted } = self.walk(&bytes, here, |at, place| at + place as u64, page);
        self.at += place as u64;
        Ok(wanted)
    }

    /// The records in bytes that `here` bytes are left of. What ends elsewhere is left.
    fn walk(
        &mut self,
        bytes: &[u8],
        here: usize,
        end: impl Fn(u64, usize) -> u64,
        page: &mut Page,
    ) -> Walk {
        let is_last = here == bytes.len();
        let mut place = 0;
        while place < bytes.len() {
            let next = match record::at(bytes, place) {
                Found::Whole(body, next) if Hint::read(body).is_some() => {
                    let end = end(self.at, next);
                    page.hints.push(PageHint { body: body.to_vec(), end });
                    page.damaged += std::mem::take(&mut self.skipped);
                    place = next;
                    continue;
                }
                Found::Whole(_, next) | Found::Damaged(next) => next,
                Found::Longer(next) if !is_last && next <= here => {
                    return Walk { place, wanted: PAGE_BYTES.max(next - place) };
                }
                Found::Nothing if !is_last && place + CUT_BYTES >= bytes.len() => break,
                Found::Longer(_) | Found::Nothing => match record::find(bytes, place + 1) {
                    Some(next) => next,
                    None if is_last => bytes.len(),
                    None => place.max(bytes.len() - CUT_BYTES.min(bytes.len())),
                },
            };
            self.skipped += (next - place) as u64;
            place = next;
        }
        Walk { place, wanted: PAGE_BYTES }
    }

    /// The records of a block.
    async fn block(&mut self, left: u64, codec: &mut Codec, page: &mut Page) -> io::Result<()> {
        let here = usize::try_from(left).unwrap_or(usize::MAX);
        let head = self.read(self.at, here.min(block::HEAD_BYTES)).await?;
        let stored = block::head(&head).filter(|(_, n)| *n <= here - head.len());
        let Some((records, n)) = stored else {
            // without a length nobody knows where the next block begins
            self.skipped += left;
            self.at += left;
            return Ok(());
        };
        let stored = self.read(self.at + head.len() as u64, n).await?;
        let (begin, after) = (self.at, self.at + (head.len() + n) as u64);
        let mut bytes = Vec::new();
        match codec.decompress(&stored, records, &mut bytes) {
            Err(_) => self.skipped += after - begin,
            Ok(()) => {
                let all = bytes.len();
                self.walk(&bytes, all, |_, _| begin, page);
                if let Some(last) = page.hints.last_mut() {
                    last.end = after;
                }
            }
        }
        self.at = after;
        Ok(())
    }
}

/// Where a walk over bytes ended, and how many to read from there.
struct Walk {
    place: usize,
    wanted: usize,
}
