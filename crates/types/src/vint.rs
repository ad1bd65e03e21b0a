//! Reading and writing of the primitives that every Cassandra format is made of: big-endian
//! integers, variable-length integers (`utils.vint.VIntCoding`), modified UTF-8
//! (`DataOutput.writeUTF`), and bytes behind a length.
//!
//! An unsigned vint's first byte has as many leading ones as bytes follow it (0 to 8); its other
//! bits and the bytes that follow are the value, big endian. A signed vint is the zigzag of it.

use thiserror::Error;

/// Why bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The input ended early.
    #[error("{wanted} more bytes expected, {left} left")]
    End {
        /// Bytes that were asked for.
        wanted: usize,
        /// Bytes that there were.
        left: usize,
    },
    /// A length or count was negative, or other than the format prescribes.
    #[error("impossible length {0}")]
    Length(i64),
    /// A vint was too large for the type it is read into.
    #[error("{0} does not fit in 32 bits")]
    TooLarge(i64),
    /// Text was not modified UTF-8, or held half a surrogate pair.
    #[error("malformed text")]
    Text,
    /// Bytes were left behind the last field.
    #[error("{0} unexpected bytes at the end")]
    Trailing(usize),
}

/// A cursor over bytes that answers an error where they end; it never panics and never allocates
/// but for text.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// A reader from the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, total: bytes.len() }
    }

    /// Bytes read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Bytes not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Has everything been read?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What has not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Refuses bytes left over.
    #[inline]
    pub fn finish(&self) -> Result<(), ReadError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ReadError::Trailing(self.rest.len())) }
    }

    #[cold]
    fn end(&self, wanted: usize) -> ReadError {
        ReadError::End { wanted, left: self.rest.len() }
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => Err(self.end(N)),
        }
    }

    /// The next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        match self.rest.split_at_checked(count) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(self.end(count)),
        }
    }

    /// Steps over `count` bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), ReadError> {
        self.bytes(count).map(|_| ())
    }

    /// The next byte, left where it is.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, ReadError> {
        match self.rest.split_first() {
            Some((&head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(self.end(1)),
        }
    }

    /// One byte; any but zero is true.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, ReadError> {
        Ok(self.u8()? != 0)
    }

    /// Two bytes, big endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, ReadError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Two bytes, big endian, signed.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, ReadError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// Four bytes, big endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, ReadError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Four bytes, big endian, signed.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, ReadError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Eight bytes, big endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, ReadError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Eight bytes, big endian, signed.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, ReadError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Four bytes, IEEE 754.
    #[inline]
    pub fn f32(&mut self) -> Result<f32, ReadError> {
        Ok(f32::from_bits(self.u32()?))
    }

    /// Eight bytes, IEEE 754.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, ReadError> {
        Ok(f64::from_bits(self.u64()?))
    }

    /// An unsigned vint.
    #[inline]
    pub fn uvint(&mut self) -> Result<u64, ReadError> {
        match self.rest.split_first() {
            Some((&first, tail)) if first < 0x80 => {
                self.rest = tail;
                Ok(u64::from(first))
            }
            Some((&first, tail)) => self.long_uvint(first, tail),
            None => Err(self.end(1)),
        }
    }

    fn long_uvint(&mut self, first: u8, tail: &'a [u8]) -> Result<u64, ReadError> {
        let extra = first.leading_ones() as usize;
        let Some((bytes, rest)) = tail.split_at_checked(extra) else {
            return Err(self.end(extra + 1));
        };
        // 0 to 7 bits of the first byte carry value; none is left when seven or eight bytes follow.
        let head = u64::from(first) & (0xff >> extra);
        let value = bytes.iter().fold(head, |value, &byte| value << 8 | u64::from(byte));
        self.rest = rest;
        Ok(value)
    }

    /// A signed vint.
    #[inline]
    pub fn vint(&mut self) -> Result<i64, ReadError> {
        Ok(unzigzag(self.uvint()?))
    }

    /// An unsigned vint that holds a Java `int`: a negative one was written sign-extended to 64
    /// bits (`readUnsignedVInt32`).
    #[inline]
    pub fn uvint32(&mut self) -> Result<i32, ReadError> {
        let value = self.uvint()?.cast_signed();
        i32::try_from(value).map_err(|_| ReadError::TooLarge(value))
    }

    /// A signed vint that holds a Java `int` (`readVInt32`).
    #[inline]
    pub fn vint32(&mut self) -> Result<i32, ReadError> {
        let value = self.vint()?;
        i32::try_from(value).map_err(|_| ReadError::TooLarge(value))
    }

    /// A count of items behind an unsigned vint, refused when the input could not hold that many
    /// items of `least` bytes each: a safe capacity for an allocation.
    #[inline]
    pub fn count(&mut self, least: usize) -> Result<usize, ReadError> {
        let count = usize::try_from(self.uvint()?).unwrap_or(usize::MAX);
        let wanted = count.saturating_mul(least.max(1));
        if wanted > self.rest.len() { Err(self.end(wanted)) } else { Ok(count) }
    }

    /// Bytes behind an unsigned vint length.
    #[inline]
    pub fn vint_bytes(&mut self) -> Result<&'a [u8], ReadError> {
        let length = usize::try_from(self.uvint()?).unwrap_or(usize::MAX);
        self.bytes(length)
    }

    /// Bytes behind a `u16` length.
    #[inline]
    pub fn short_bytes(&mut self) -> Result<&'a [u8], ReadError> {
        let length = usize::from(self.u16()?);
        self.bytes(length)
    }

    /// Bytes behind an `i32` length; a negative one is an error.
    #[inline]
    pub fn int_bytes(&mut self) -> Result<&'a [u8], ReadError> {
        let length = self.i32()?;
        let Ok(length) = usize::try_from(length) else {
            return Err(ReadError::Length(length.into()));
        };
        self.bytes(length)
    }

    /// Bytes behind an `i32` length; any negative one is null.
    #[inline]
    pub fn int_bytes_or_null(&mut self) -> Result<Option<&'a [u8]>, ReadError> {
        match usize::try_from(self.i32()?) {
            Ok(length) => self.bytes(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Text as `DataInput.readUTF` reads it: a `u16` length in bytes, then modified UTF-8.
    pub fn utf(&mut self) -> Result<String, ReadError> {
        decode_modified_utf8(self.short_bytes()?)
    }
}

/// The length in bytes of `value` as an unsigned vint, 1 to 9.
#[inline]
pub fn uvint_size(value: u64) -> usize {
    ((639 - 9 * (value | 1).leading_zeros()) >> 6) as usize
}

/// The length in bytes of `value` as a signed vint, 1 to 9.
#[inline]
pub fn vint_size(value: i64) -> usize {
    uvint_size(zigzag(value))
}

/// Folds the sign into the lowest bit.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// Undoes [`zigzag`].
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Text or bytes too long for the length field in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} bytes do not fit behind a 16-bit length")]
pub struct TooLong(pub usize);

/// What [`Reader`] reads, written. All integers are big endian.
pub trait WriteBytes {
    /// Bytes as they are.
    fn put(&mut self, bytes: &[u8]);
    /// One byte.
    fn put_u8(&mut self, value: u8);
    /// An unsigned vint.
    fn put_uvint(&mut self, value: u64);

    /// One byte, 1 for true.
    #[inline]
    fn put_bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }
    /// Two bytes.
    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }
    /// Two bytes.
    #[inline]
    fn put_i16(&mut self, value: i16) {
        self.put(&value.to_be_bytes());
    }
    /// Four bytes.
    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }
    /// Four bytes.
    #[inline]
    fn put_i32(&mut self, value: i32) {
        self.put(&value.to_be_bytes());
    }
    /// Eight bytes.
    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }
    /// Eight bytes.
    #[inline]
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_be_bytes());
    }
    /// Eight bytes, IEEE 754.
    #[inline]
    fn put_f64(&mut self, value: f64) {
        self.put(&value.to_be_bytes());
    }
    /// Four bytes, IEEE 754.
    #[inline]
    fn put_f32(&mut self, value: f32) {
        self.put(&value.to_be_bytes());
    }
    /// A signed vint.
    #[inline]
    fn put_vint(&mut self, value: i64) {
        self.put_uvint(zigzag(value));
    }
    /// A Java `int` as an unsigned vint: a negative one takes nine bytes (`writeUnsignedVInt32`).
    #[inline]
    fn put_uvint32(&mut self, value: i32) {
        self.put_uvint(i64::from(value).cast_unsigned());
    }
    /// Bytes behind an unsigned vint length.
    #[inline]
    fn put_vint_bytes(&mut self, bytes: &[u8]) {
        self.put_uvint(bytes.len() as u64);
        self.put(bytes);
    }
    /// Bytes behind a `u16` length.
    #[inline]
    fn put_short_bytes(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let length = u16::try_from(bytes.len()).map_err(|_| TooLong(bytes.len()))?;
        self.put_u16(length);
        self.put(bytes);
        Ok(())
    }
    /// Bytes behind an `i32` length. Values reach 2 GiB in no format that frames them so; a longer
    /// one is cut off at the largest length rather than corrupt what follows.
    #[inline]
    fn put_int_bytes(&mut self, bytes: &[u8]) {
        let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        self.put_i32(length);
        self.put(bytes.get(..length as usize).unwrap_or(bytes));
    }
    /// Text as `DataOutput.writeUTF` writes it.
    fn put_utf(&mut self, text: &str) -> Result<(), TooLong> {
        let bytes = encode_modified_utf8(text);
        self.put_short_bytes(&bytes)
    }
}

impl WriteBytes for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    #[inline]
    fn put_uvint(&mut self, value: u64) {
        if value < 0x80 {
            return self.push(value as u8);
        }
        let extra = uvint_size(value) - 1;
        if extra == 8 {
            self.push(0xff);
            return self.extend_from_slice(&value.to_be_bytes());
        }
        // The value leaves at least `extra` + 1 bits free at the top of its `extra` + 1 bytes.
        let marker = !(0xff_u64 >> extra) & 0xff;
        let bytes = (value | marker << (8 * extra)).to_be_bytes();
        self.extend_from_slice(&bytes[7 - extra..]);
    }
}

/// Java's modified UTF-8 of `text`: NUL as `C0 80`, supplementary characters as surrogate pairs.
pub fn encode_modified_utf8(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        let continuation = |shift: u32| 0x80 | (unit >> shift & 0x3f) as u8;
        match unit {
            1..0x80 => out.push(unit as u8),
            0..0x800 => out.extend([0xc0 | (unit >> 6) as u8, continuation(0)]),
            _ => out.extend([0xe0 | (unit >> 12) as u8, continuation(6), continuation(0)]),
        }
    }
    out
}

/// The text of Java's modified UTF-8. Half a surrogate pair, which Java would let through, is an
/// error.
pub fn decode_modified_utf8(bytes: &[u8]) -> Result<String, ReadError> {
    if bytes.is_ascii() {
        return Ok(bytes.iter().map(|&byte| char::from(byte)).collect());
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let (unit, tail) = match (first >> 4, tail) {
            (0..8, tail) => (u16::from(first), tail),
            (12 | 13, [second, tail @ ..]) => {
                (u16::from(first & 0x1f) << 6 | continuation(*second)?, tail)
            }
            (14, [second, third, tail @ ..]) => {
                let high = u16::from(first & 0xf) << 12;
                (high | continuation(*second)? << 6 | continuation(*third)?, tail)
            }
            _ => return Err(ReadError::Text),
        };
        units.push(unit);
        rest = tail;
    }
    String::from_utf16(&units).map_err(|_| ReadError::Text)
}

fn continuation(byte: u8) -> Result<u16, ReadError> {
    if byte & 0xc0 == 0x80 { Ok(u16::from(byte & 0x3f)) } else { Err(ReadError::Text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_uvint(value);
        out
    }

    #[test]
    fn vints_as_cassandra_writes_them() {
        // The timestamp delta of the mutation captured from 5.0.9 (interop.md, 4.9: M1).
        let captured = [0xfc, 0xe9, 0xd9, 0x6a, 0x43, 0xbf, 0xff];
        let delta = 1_700_000_000_000_000 - 1 - 1_442_880_000_000_000;
        assert_eq!(written(delta), captured);
        assert_eq!(Reader::new(&captured).uvint(), Ok(delta));
        assert_eq!(written(0x7f), [0x7f]);
        assert_eq!(written(0x80), [0x80, 0x80]);
        assert_eq!(written(0x3fff), [0xbf, 0xff]);
        assert_eq!(written(0x4000), [0xc0, 0x40, 0x00]);
        assert_eq!(written(1000), [0x83, 0xe8]);
        assert_eq!(written(u64::from(i32::MAX.cast_unsigned())), [0xf0, 0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(written(u64::MAX), [0xff; 9]);
        let mut negative = Vec::new();
        negative.put_uvint32(-1);
        assert_eq!(negative, [0xff; 9]);
        assert_eq!(Reader::new(&negative).uvint32(), Ok(-1));
    }

    #[test]
    fn modified_utf8() {
        let text = "a\0\u{e9}\u{20ac}\u{1f600}";
        let bytes = encode_modified_utf8(text);
        assert_eq!(crate::hex::to_hex(&bytes), "61c080c3a9e282aceda0bdedb880");
        assert_eq!(decode_modified_utf8(&bytes).as_deref(), Ok(text));
        assert_eq!(decode_modified_utf8(&[0xed, 0xa0, 0xbd]), Err(ReadError::Text));
        assert_eq!(decode_modified_utf8(&[0xc3]), Err(ReadError::Text));
        assert_eq!(Vec::new().put_utf(&"x".repeat(65_536)), Err(TooLong(65_536)));
    }

    #[test]
    fn lengths_are_not_trusted() {
        assert!(Reader::new(&[0xff; 9]).vint_bytes().is_err());
        assert!(Reader::new(&[0xff; 9]).count(1).is_err());
        assert_eq!(Reader::new(&[2, 0, 0]).count(1), Ok(2));
        assert!(Reader::new(&[2, 0, 0]).count(2).is_err());
        let minus = (-2i32).to_be_bytes();
        assert_eq!(Reader::new(&minus).int_bytes(), Err(ReadError::Length(-2)));
        assert_eq!(Reader::new(&minus).int_bytes_or_null(), Ok(None));
    }

    proptest! {
        #[test]
        fn uvint_round_trip(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let bytes = written(value);
            prop_assert_eq!(bytes.len(), uvint_size(value));
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.uvint(), Ok(value));
            prop_assert!(reader.is_empty());
            for cut in 0..bytes.len() {
                prop_assert!(Reader::new(&bytes[..cut]).uvint().is_err());
            }
        }

        #[test]
        fn vint_round_trip(value: i64, shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            bytes.put_vint(value);
            prop_assert_eq!(bytes.len(), vint_size(value));
            prop_assert_eq!(Reader::new(&bytes).vint(), Ok(value));
        }

        #[test]
        fn utf_round_trip(text: String) {
            let mut bytes = Vec::new();
            bytes.put_utf(&text).unwrap();
            prop_assert_eq!(Reader::new(&bytes).utf(), Ok(text));
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.uvint().is_ok() {}
            let _ = Reader::new(&bytes).utf();
            let _ = decode_modified_utf8(&bytes);
        }
    }
}
