//! The way out: compresses bodies (versions 3 and 4) or packs envelopes into segments (5 on).
//!
//! Messages are written straight into the connection's output buffer between [`Framer::begin`] and
//! [`Framer::end`]; one segment collects as many of them as it holds, so a loop turn's answers
//! cost one checksum and one write.

use segment::Packer;

use crate::{
    compression::{Compression, Compressor},
    decoder::Started,
    header::{FLAGS_OFFSET, Flags, HEADER_LENGTH, RESPONSE, end},
    version::Version,
};

/// Frames what one connection sends; either side of it may use one.
#[derive(Debug, Default)]
pub struct Framer {
    mode: Mode,
}

#[derive(Debug, Default)]
enum Mode {
    #[default]
    Bare,
    Bodies(Compression, Box<Compressor>),
    Segments(Packer),
}

impl Framer {
    /// A framer for a connection before its STARTUP: envelopes travel as they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// STARTUP is agreed on: what follows is framed accordingly. The answer to STARTUP itself
    /// comes before this call from version 5 on, and after it before (Cassandra compresses it).
    /// Nothing may be left unflushed.
    pub fn start(&mut self, started: Started) {
        self.mode = match started.compression {
            _ if started.version.is_segmented() => Mode::Segments(Packer::new(started.form())),
            None => Mode::Bare,
            Some(compression) => Mode::Bodies(compression, Box::new(Compressor::new())),
        };
    }

    /// Makes room for a message at the end of `out`. Between this call and [`Self::flush`] bytes
    /// of `out` may be appended, but not removed from its front.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Mode::Segments(packer) = &mut self.mode {
            packer.begin(out);
        }
    }

    /// The message that starts at `start` (what [`begin`](Self::begin) left as the end of `out`) is
    /// complete.
    pub fn end(&mut self, out: &mut Vec<u8>, start: usize) {
        match &mut self.mode {
            Mode::Bare => {}
            Mode::Bodies(compression, compressor) => {
                compress_body(out, start, *compression, compressor);
            }
            Mode::Segments(packer) => packer.end(out, start),
        }
    }

    /// Writes one message that is complete when `message` returns.
    pub fn write<R>(&mut self, out: &mut Vec<u8>, message: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.begin(out);
        let start = out.len();
        let result = message(out);
        self.end(out, start);
        result
    }

    /// Appends a whole message that was encoded elsewhere, framed.
    pub fn push(&mut self, out: &mut Vec<u8>, message: &[u8]) {
        self.write(out, |out| out.extend_from_slice(message));
    }

    /// Seals the segment that is being filled; after it `out` may be handed to the socket.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Mode::Segments(packer) = &mut self.mode {
            packer.flush(out);
        }
    }
}

fn compress_body(
    out: &mut Vec<u8>,
    start: usize,
    compression: Compression,
    compressor: &mut Compressor,
) {
    // answers to versions 1 and 2 have another header, and their clients asked for nothing
    let version = out.get(start).map(|first| Version::from_number(first & !RESPONSE));
    if !matches!(version, Some(Ok(_))) {
        return;
    }
    let body = start + HEADER_LENGTH;
    let Some(plain) = out.get(body..) else { return };
    if let Some(compressed) = compressor.body(compression, plain) {
        out.truncate(body);
        out.extend_from_slice(compressed);
        if let Some(flags) = out.get_mut(start + FLAGS_OFFSET) {
            *flags |= Flags::COMPRESSED.0;
        }
        end(out, start);
    }
}
