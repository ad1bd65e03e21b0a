//! A segment's header and its checksums.
//!
//! ```text
//! plain:  17 bit payload length, 1 bit self-contained, 6 bit 0      (3 bytes, little endian)
//! LZ4:    17 bit length as it travels, 17 bit length uncompressed   (5 bytes, little endian)
//!         (0: stored as it is), 1 bit self-contained, 5 bit 0
//! then:   CRC24 of the above (3 bytes), payload, CRC32 of the payload as it travels (4 bytes; bare
//!         segments have none)
//! ```

/// Longest payload, in bytes.
pub const MAX_PAYLOAD: usize = (1 << 17) - 1;
/// Length of the CRC32 behind a payload.
pub const TRAILER_LENGTH: usize = 4;
/// The most bytes of a segment that are not payload.
pub const MAX_OVERHEAD: usize = Form::Lz4.header_length() + TRAILER_LENGTH;
/// Longest segment, in bytes.
pub const MAX_SEGMENT: usize = MAX_OVERHEAD + MAX_PAYLOAD;

/// Bits of a length.
const LENGTH_BITS: u32 = 17;
/// Polynomial of the header's checksum (Koopman's 0x8BA785).
const CRC24_POLYNOMIAL: u32 = 0x197_4F0B;
/// Start value of the header's checksum.
const CRC24_START: u32 = 0x87_5060;
/// Bytes that the payload's checksum is primed with, so that zeros do not sum to zero.
const CRC32_PRIMING: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];

/// The form of a connection's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Without compression.
    Plain,
    /// Payloads may be LZ4 blocks.
    Lz4,
    /// Without compression, and nothing guards the payload: between nodes only.
    Bare,
}

impl Form {
    /// Length of lengths and flag, without their checksum.
    const fn prefix_length(self) -> usize {
        match self {
            Self::Plain | Self::Bare => 3,
            Self::Lz4 => 5,
        }
    }

    /// Length of what follows a payload.
    pub const fn trailer_length(self) -> usize {
        match self {
            Self::Plain | Self::Lz4 => TRAILER_LENGTH,
            Self::Bare => 0,
        }
    }

    /// Where a header has the flag that says "self-contained".
    const fn flag(self) -> u32 {
        match self {
            Self::Plain | Self::Bare => LENGTH_BITS,
            Self::Lz4 => 2 * LENGTH_BITS,
        }
    }

    /// Length of a header with its checksum.
    pub const fn header_length(self) -> usize {
        self.prefix_length() + 3
    }
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Length of the payload as it travels.
    pub length: usize,
    /// Length of the payload after decompression; none where it is not compressed.
    pub uncompressed: Option<usize>,
    /// Does it hold whole messages (rather than a part of one)?
    pub self_contained: bool,
}

/// A checksum, read and computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// As read.
    pub read: u32,
    /// As computed.
    pub computed: u32,
}

impl SegmentHeader {
    /// Reads a header; `bytes` holds at least [`Form::header_length`] bytes, else none.
    pub fn parse(form: Form, bytes: &[u8]) -> Option<Result<Self, Mismatch>> {
        let (prefix, rest) = bytes.split_at_checked(form.prefix_length())?;
        let checksum = rest.first_chunk::<3>()?;
        let read = little_endian(checksum) as u32;
        let computed = crc24(prefix);
        if read != computed {
            return Some(Err(Mismatch { read, computed }));
        }
        let bits = little_endian(prefix);
        let mask = (1u64 << LENGTH_BITS) - 1;
        let length = (bits & mask) as usize;
        let uncompressed = match form {
            Form::Plain | Form::Bare => 0,
            Form::Lz4 => (bits >> LENGTH_BITS & mask) as usize,
        };
        let uncompressed = (uncompressed > 0).then_some(uncompressed);
        Some(Ok(Self { length, uncompressed, self_contained: bits >> form.flag() & 1 == 1 }))
    }

    /// The header's bytes; the first [`Form::header_length`] of them count.
    pub fn encode(&self, form: Form) -> [u8; 8] {
        let bits = self.length as u64
            | (self.uncompressed.unwrap_or(0) as u64) << LENGTH_BITS
            | u64::from(self.self_contained) << form.flag();
        let prefix = bits.to_le_bytes();
        let length = form.prefix_length();
        let checksum = crc24(prefix.get(..length).unwrap_or_default());
        (bits | u64::from(checksum) << (8 * length)).to_le_bytes()
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

const CRC24_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            crc <<= 1;
            if crc & 0x100_0000 != 0 {
                crc ^= CRC24_POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Checksum of a header's prefix.
pub fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC24_START, |crc, byte| {
        let index = (crc >> 16) as u8 ^ byte;
        (crc << 8 ^ CRC24_TABLE[usize::from(index)]) & 0xFF_FFFF
    })
}

/// Checksum of a payload as it travels (little endian behind it), and of the handshake's messages
/// between nodes (big endian there).
pub fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&CRC32_PRIMING);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips_in_both_forms() {
        for (form, uncompressed) in [
            (Form::Plain, None),
            (Form::Bare, None),
            (Form::Lz4, None),
            (Form::Lz4, Some(MAX_PAYLOAD)),
        ] {
            for self_contained in [false, true] {
                for length in [0, 1, 65536, MAX_PAYLOAD] {
                    let header = SegmentHeader { length, uncompressed, self_contained };
                    let bytes = header.encode(form);
                    assert_eq!(SegmentHeader::parse(form, &bytes), Some(Ok(header)));
                    for bit in 0..form.header_length() * 8 {
                        let mut bad = bytes;
                        bad[bit / 8] ^= 1 << (bit % 8);
                        assert!(matches!(SegmentHeader::parse(form, &bad), Some(Err(_))));
                    }
                }
            }
        }
    }

    #[test]
    fn short_header_is_none() {
        assert_eq!(SegmentHeader::parse(Form::Plain, &[0; 5]), None);
        assert_eq!(SegmentHeader::parse(Form::Lz4, &[0; 7]), None);
    }
}
