//! The way out: compresses bodies (versions 3 and 4) or packs envelopes into segments (5 on).
//!
//! Messages are written straight into the connection's output buffer between [`Framer::begin`] and
//! [`Framer::end`]; one segment collects as many of them as it holds, so a loop turn's answers
//! cost one checksum and one write.

use crate::{
    compression::{Compression, Compressor, reset_scratch},
    decoder::Started,
    header::{FLAGS_OFFSET, Flags, HEADER_LENGTH, RESPONSE, end},
    segment::{Form, MAX_PAYLOAD, SegmentHeader, crc32},
    version::Version,
};

/// Frames what one connection sends; either side of it may use one.
#[derive(Debug, Default)]
pub struct Framer {
    mode: Mode,
    /// Where in the output the segment that is being filled starts.
    open: Option<usize>,
    scratch: Vec<u8>,
    compressor: Option<Box<Compressor>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Mode {
    #[default]
    Bare,
    Bodies(Compression),
    Segments(Form),
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
            _ if started.version.is_segmented() => Mode::Segments(started.form()),
            None => Mode::Bare,
            Some(compression) => Mode::Bodies(compression),
        };
    }

    /// Makes room for a message at the end of `out`. Between this call and [`Self::flush`] bytes
    /// of `out` may be appended, but not removed from its front.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Mode::Segments(form) = self.mode
            && self.open.is_none()
        {
            self.open = Some(out.len());
            out.resize(out.len() + form.header_length(), 0);
        }
    }

    /// The message that starts at `start` (what [`begin`](Self::begin) left as the end of `out`) is
    /// complete.
    pub fn end(&mut self, out: &mut Vec<u8>, start: usize) {
        match self.mode {
            Mode::Bare => {}
            Mode::Bodies(compression) => self.compress_body(out, start, compression),
            Mode::Segments(form) => self.pack(out, start, form),
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
        if let (Mode::Segments(form), Some(open)) = (self.mode, self.open.take()) {
            if out.len() > open + form.header_length() {
                self.seal(out, open, form, true);
            } else {
                out.truncate(open);
            }
        }
    }

    fn compress_body(&mut self, out: &mut Vec<u8>, start: usize, compression: Compression) {
        // answers to versions 1 and 2 have another header, and their clients asked for nothing
        let version = out.get(start).map(|first| Version::from_number(first & !RESPONSE));
        if !matches!(version, Some(Ok(_))) {
            return;
        }
        let compressor = self.compressor.get_or_insert_with(|| Box::new(Compressor::new()));
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

    /// Keeps the open segment within its size: seals it in front of a message that does not fit.
    fn pack(&mut self, out: &mut Vec<u8>, start: usize, form: Form) {
        let Some(open) = self.open else { return };
        if out.len().saturating_sub(open + form.header_length()) <= MAX_PAYLOAD {
            return;
        }
        let mut message = std::mem::take(&mut self.scratch);
        message.clear();
        message.extend_from_slice(out.get(start..).unwrap_or_default());
        out.truncate(start);
        self.flush(out);
        if message.len() <= MAX_PAYLOAD {
            self.begin(out);
            out.extend_from_slice(&message);
        } else {
            for part in message.chunks(MAX_PAYLOAD) {
                let open = out.len();
                out.resize(open + form.header_length(), 0);
                out.extend_from_slice(part);
                self.seal(out, open, form, false);
            }
        }
        reset_scratch(&mut message);
        self.scratch = message;
    }

    /// Completes the segment at `open`, whose payload reaches to the end of `out`.
    fn seal(&mut self, out: &mut Vec<u8>, open: usize, form: Form, self_contained: bool) {
        let payload_at = open + form.header_length();
        let payload = out.get(payload_at..).unwrap_or_default();
        let mut header =
            SegmentHeader { length: payload.len(), uncompressed: None, self_contained };
        if form == Form::Lz4 {
            let compressor = self.compressor.get_or_insert_with(|| Box::new(Compressor::new()));
            if let Some(block) = compressor.block(payload) {
                header.uncompressed = Some(payload.len());
                header.length = block.len();
                out.truncate(payload_at);
                out.extend_from_slice(block);
            }
        }
        let encoded = header.encode(form);
        for (place, byte) in out.iter_mut().skip(open).zip(encoded).take(form.header_length()) {
            *place = byte;
        }
        let checksum = crc32(out.get(payload_at..).unwrap_or_default());
        out.extend_from_slice(&checksum.to_le_bytes());
    }
}
