//! A file of hints that is not full yet.

use std::rc::Rc;

use crc32fast::Hasher;
use env::File;
use sstable::compressor::Codec;

use crate::file::HintFile;

/// A file that is written to.
pub(crate) struct Writer {
    pub data: Rc<HintFile>,
    pub file: File,
    /// Of all that is in it.
    pub crc: Hasher,
    pub codec: Option<Codec>,
}
