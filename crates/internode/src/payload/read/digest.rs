//! The digest of an answer's data (`Digest.forReadResponse`): MD5 of all partitions, one after
//! another.

use md5::{Digest, Md5};
use rows::codec::{Header, PartitionStart};
use rows::digest::{PartitionDigest, digest_some};
use rows::{Layout, RowRef, Unfiltered};

use super::response::DIGEST_BYTES;

/// Takes what [`DataWriter`](super::DataWriter) would write.
#[derive(Clone, Debug)]
pub struct DataDigest<'t> {
    layout: &'t Layout,
    md5: Md5,
    skipped: Option<u16>,
}

impl<'t> DataDigest<'t> {
    /// Of no partition yet.
    pub fn new(layout: &'t Layout) -> Self {
        Self { layout, md5: Md5::new(), skipped: None }
    }

    /// A bug for worlds that look for it: the last regular column is left out.
    pub fn skip_last_column(&mut self) {
        let columns = self.layout.columns(false).len();
        self.skipped = columns.checked_sub(1).and_then(|last| u16::try_from(last).ok());
    }

    /// A partition's start. `columns` are those that the read fetches; none of a partition that was
    /// told to be empty, as Cassandra counts it.
    pub fn start(&mut self, start: &PartitionStart<'_>, columns: Option<&Header>) {
        let partition = PartitionDigest {
            key: start.key,
            deletion: Some(start.deletion),
            is_reversed: start.is_reversed,
            static_row: start.static_row.as_deref().map(RowRef::from_packed),
        };
        let is_fetched = |is_static, column| {
            columns.is_some_and(|header| header.columns(is_static).contains(column))
        };
        partition.digest(self.layout, is_fetched, &mut |bytes| self.md5.update(bytes));
    }

    /// A row or marker.
    pub fn unfiltered(&mut self, unfiltered: Unfiltered<'_>) {
        let counts = |column| Some(column) != self.skipped;
        digest_some(self.layout, unfiltered, counts, &mut |bytes| self.md5.update(bytes));
    }

    /// The digest.
    pub fn finish(self) -> [u8; DIGEST_BYTES] {
        self.md5.finalize().into()
    }
}
