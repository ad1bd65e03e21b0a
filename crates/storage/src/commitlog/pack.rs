//! Compressing sections, one after the other.

use env::Env;
use sstable::compressor::Codec;

use super::format::{self, Compression};

/// More bytes than this keep a slow compressor busy for longer than a shard may be kept.
const SLOW_BYTES: usize = 32 << 10;

/// What compresses a log's sections, with the memory that it works in.
pub(super) struct Packer {
    codec: Option<Codec>,
    compression: Compression,
    buffer: Vec<u8>,
}

impl Packer {
    pub fn new(compression: &Compression) -> Self {
        let compression = compression.clone();
        Self { codec: Some(compression.codec()), compression, buffer: Vec::new() }
    }

    /// The compressed form of a section, not closed, and the section. What takes long is done on a
    /// helper thread.
    pub async fn pack(
        &mut self,
        env: &Env,
        section: Vec<u8>,
    ) -> Result<(Vec<u8>, Vec<u8>), sstable::Error> {
        let mut codec = self.codec.take().unwrap_or_else(|| self.compression.codec());
        let mut out = std::mem::take(&mut self.buffer);
        let is_slow = codec.compressor().is_slow() && section.len() > SLOW_BYTES;
        let pack = move || {
            let packed = format::compress_section(&section, &mut codec, &mut out);
            (packed, codec, out, section)
        };
        let (packed, codec, out, section) = if is_slow { env.helper(pack).await } else { pack() };
        self.codec = Some(codec);
        packed.map(|()| (out, section))
    }

    /// Takes a buffer for the next section.
    pub fn take_back(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }
}
