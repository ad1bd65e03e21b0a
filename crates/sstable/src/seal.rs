//! Checksums of what Cassandra's formats have none of: index, summary, filter, and that all are of
//! one SSTable.
//!
//! They follow the last key in `Summary.db`, where Cassandra reads no further. A summary that
//! Cassandra wrote, or wrote anew, has none, and is read as it is. A filter may be another than the
//! one that is sealed, since Cassandra writes one anew where a table's option asks for another; it
//! is then not asked.
//!
//! ```text
//! data_length u64, index_length u64     bytes of Data.db and Index.db
//! statistics u32                        of what no tool changes in Statistics.db
//! chunks u32, filter u32                of CompressionInfo.db or CRC.db, and of Filter.db; 0
//!                                       without it
//! pages u32*                            of each 4 KiB of Index.db
//! data u32*                             of each chunk of Data.db, where it is compressed: those
//!                                       that stand there beside the chunks an older file has,
//!                                       too
//! summary u32                           of all of Summary.db before, these fields included
//! length u32                            bytes of all fields before this one but summary
//! magic                                 "HELSEAL2"; "HELSEAL1" where pages are of 16 KiB, as
//!                                       they were
//! ```

use crate::bytes::Reader;
use crate::error::{Result, corrupt};
use crate::statistics::Stats;

/// Bytes of a page of `Index.db`, as they are checked and cached.
pub const INDEX_PAGE_BYTES: usize = 4 << 10;
/// Of each kind of seal its magic, and the bytes of a page; the first is the one that is written.
const KINDS: [(&[u8; MAGIC_BYTES], usize); 2] =
    [(b"HELSEAL2", INDEX_PAGE_BYTES), (b"HELSEAL1", 16 << 10)];
const MAGIC_BYTES: usize = 8;
const SUMMARY: &str = "Summary.db";
/// Bytes after the fields that `length` counts.
const TAIL_BYTES: usize = 4 + 4 + MAGIC_BYTES;

/// What is known of an SSTable's other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Bytes of `Data.db`.
    pub data_length: u64,
    /// Bytes of `Index.db`.
    pub index_length: u64,
    /// Of `Statistics.db`: [`statistics_checksum`].
    pub statistics: u32,
    /// Of `CompressionInfo.db` or `CRC.db`.
    pub chunks: u32,
    /// Of `Filter.db`; 0 without it.
    pub filter: u32,
    /// Of each page of `Index.db`.
    pub pages: Vec<u32>,
    /// Bytes of such a page.
    pub page_bytes: usize,
    /// Of each compressed chunk of `Data.db`; none of an SSTable that is not compressed, or that an
    /// earlier release wrote.
    pub data: Vec<u32>,
}

/// Of what stays as it is in an SSTable's metadata as long as it lives: not its level, nor when it
/// was repaired.
pub fn statistics_checksum(stats: &Stats) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for number in [stats.min_timestamp, stats.max_timestamp, stats.rows] {
        hasher.update(&number.to_be_bytes());
    }
    for (from, to) in &stats.log_intervals {
        for position in [from, to] {
            hasher.update(&position.segment.to_be_bytes());
            hasher.update(&position.offset.to_be_bytes());
        }
    }
    hasher.finalize()
}

impl Seal {
    /// Puts it behind a summary: one with pages of [`INDEX_PAGE_BYTES`].
    pub fn append(&self, summary: &mut Vec<u8>) {
        let start = summary.len();
        summary.extend(self.data_length.to_be_bytes());
        summary.extend(self.index_length.to_be_bytes());
        let fixed = [self.statistics, self.chunks, self.filter];
        for checksum in fixed.iter().chain(&self.pages).chain(&self.data) {
            summary.extend(checksum.to_be_bytes());
        }
        let length = u32::try_from(summary.len() - start);
        let length = length.expect("the checksums of a table take less than 4 GiB");
        summary.extend(crc32fast::hash(summary).to_be_bytes());
        summary.extend(length.to_be_bytes());
        summary.extend(KINDS[0].0);
    }

    /// Takes it off a `Summary.db`; the summary's own bytes, and the seal where there is one.
    ///
    /// # Errors
    /// If it is damaged, or the summary is.
    pub fn split(bytes: &[u8]) -> Result<(&[u8], Option<Self>)> {
        let kind = KINDS.into_iter().find(|(magic, _)| bytes.ends_with(*magic));
        let Some((magic, page_bytes)) = kind else { return Ok((bytes, None)) };
        let rest = bytes.strip_suffix(magic).unwrap_or(bytes);
        let Some((rest, length)) = rest.split_last_chunk::<4>() else {
            return corrupt(SUMMARY, "it ends inside its seal");
        };
        let Some((sealed, checksum)) = rest.split_last_chunk::<4>() else {
            return corrupt(SUMMARY, "it ends inside its seal");
        };
        if crc32fast::hash(sealed) != u32::from_be_bytes(*checksum) {
            return corrupt(SUMMARY, "its checksum does not match");
        }
        let length = u32::from_be_bytes(*length) as usize;
        let Some((summary, fields)) =
            sealed.len().checked_sub(length).and_then(|at| sealed.split_at_checked(at))
        else {
            return corrupt(SUMMARY, format!("its seal has the wrong size of {length} bytes"));
        };
        let mut reader = Reader::new(SUMMARY, fields);
        let (data_length, index_length) = (reader.u64()?, reader.u64()?);
        let (statistics, chunks, filter) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let mut pages = Vec::with_capacity(reader.left() / 4);
        while reader.left() > 0 {
            pages.push(reader.u32()?);
        }
        let wanted = index_length.div_ceil(page_bytes as u64);
        let Some(wanted) = usize::try_from(wanted).ok().filter(|wanted| *wanted <= pages.len())
        else {
            return corrupt(
                SUMMARY,
                format!(
                    "it lists {} pages, too few for an index of {index_length} bytes",
                    pages.len()
                ),
            );
        };
        let data = pages.split_off(wanted);
        let seal =
            Self { data_length, index_length, statistics, chunks, filter, pages, page_bytes, data };
        Ok((summary, Some(seal)))
    }

    /// Bytes that it takes of a `Summary.db`.
    pub fn bytes(&self) -> usize {
        28 + 4 * (self.pages.len() + self.data.len()) + TAIL_BYTES
    }
}

/// The pages of an index that is being written.
#[derive(Default)]
pub(crate) struct Pages {
    hasher: crc32fast::Hasher,
    filled: usize,
    done: Vec<u32>,
}

impl Pages {
    /// More bytes of the index.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            assert!(self.filled < INDEX_PAGE_BYTES, "a full page has ended");
            let (now, later) = bytes.split_at(bytes.len().min(INDEX_PAGE_BYTES - self.filled));
            self.hasher.update(now);
            self.filled += now.len();
            if self.filled == INDEX_PAGE_BYTES {
                self.end_page();
            }
            bytes = later;
        }
    }

    fn end_page(&mut self) {
        self.done.push(std::mem::take(&mut self.hasher).finalize());
        self.filled = 0;
    }

    /// All of them.
    pub fn finish(mut self) -> Vec<u32> {
        if self.filled > 0 {
            self.end_page();
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_sealed_summary_is_checked() {
        let mut pages = Pages::default();
        pages.update(&[1; 3000]);
        pages.update(&[2; 3000]);
        let pages = pages.finish();
        let mut first = [1; INDEX_PAGE_BYTES];
        first[3000..].fill(2);
        assert_eq!(
            pages,
            [crc32fast::hash(&first), crc32fast::hash(&[2; 6000 - INDEX_PAGE_BYTES])]
        );
        let seal = Seal {
            data_length: 7,
            index_length: 6000,
            statistics: 3,
            chunks: 4,
            filter: 5,
            pages,
            page_bytes: INDEX_PAGE_BYTES,
            data: vec![6, 7],
        };
        let mut bytes = b"a summary".to_vec();
        seal.append(&mut bytes);
        assert_eq!(bytes.len(), 9 + seal.bytes());
        assert_eq!(Seal::split(&bytes).unwrap(), (&b"a summary"[..], Some(seal)));
        assert_eq!(Seal::split(b"a summary").unwrap(), (&b"a summary"[..], None));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // without its last word it is no seal, and no summary ends there
            let refused = match Seal::split(&damaged) {
                Err(_) => true,
                Ok((summary, None)) => summary.len() > 9,
                Ok((_, Some(_))) => false,
            };
            assert!(refused, "bit {bit}");
        }
    }

    #[test]
    fn a_seal_of_larger_pages_is_read() {
        // what comes before, a seal of one page of 16 KiB and one chunk, and their checksum
        let mut bytes = b"a summary".to_vec();
        for length in [7_u64, 16_384] {
            bytes.extend(length.to_be_bytes());
        }
        for checksum in [3_u32, 4, 5, 6, 7] {
            bytes.extend(checksum.to_be_bytes());
        }
        let length = bytes.len() as u32 - 9;
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(b"HELSEAL1");
        let (summary, seal) = Seal::split(&bytes).unwrap();
        let seal = seal.unwrap();
        assert_eq!((summary, seal.page_bytes), (&b"a summary"[..], 16 << 10));
        assert_eq!((seal.pages, seal.data), (vec![6], vec![7]));
    }
}
