//! A bounded reader of message bodies: everything is borrowed, nothing is allocated.

use crate::{
    consistency::Consistency,
    error::{MAX_QUOTED_BYTES, ProtocolError},
};

/// Reads the notations of section 3 of the specification off the front of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

type Result<T> = std::result::Result<T, ProtocolError>;

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.rest.split_at_checked(length) else {
            return Err(ProtocolError::Truncated { needed: length, remaining: self.rest.len() });
        };
        self.rest = tail;
        Ok(head)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(ProtocolError::Truncated { needed: N, remaining: self.rest.len() });
        };
        self.rest = tail;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub fn i8(&mut self) -> Result<i8> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// `[string]`.
    pub fn string(&mut self) -> Result<&'a str> {
        let length = self.u16().map_err(|_| ProtocolError::ShortString)?;
        let bytes = self.take(usize::from(length)).map_err(|_| ProtocolError::ShortString)?;
        utf8(bytes)
    }

    /// `[long string]`.
    pub fn long_string(&mut self) -> Result<&'a str> {
        let length = self.i32().map_err(|_| ProtocolError::ShortLongString)?;
        let length = usize::try_from(length).map_err(|_| ProtocolError::ShortLongString)?;
        utf8(self.take(length).map_err(|_| ProtocolError::ShortLongString)?)
    }

    /// `[short bytes]`.
    pub fn short_bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u16().map_err(|_| ProtocolError::ShortBytes)?;
        self.take(usize::from(length)).map_err(|_| ProtocolError::ShortBytes)
    }

    /// `[bytes]`: any negative length is null.
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>> {
        let length = self.i32()?;
        match usize::try_from(length) {
            Err(_) => Ok(None),
            Ok(size) => self.value(length, size).map(Some),
        }
    }

    /// The bytes of a value whose length was read already, as `length` and as `size`.
    pub fn value(&mut self, length: i32, size: usize) -> Result<&'a [u8]> {
        let remaining = self.remaining();
        self.take(size).map_err(|_| ProtocolError::ValueTooLong { length, remaining })
    }

    pub fn consistency(&mut self) -> Result<Consistency> {
        Consistency::from_code(self.u16()?)
    }
}

/// Checks a string.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let bad = bytes.get(error.valid_up_to()..).unwrap_or_default();
        let hex = bad.iter().take(MAX_QUOTED_BYTES).map(|byte| format!("{byte:02x}")).collect();
        ProtocolError::NotUtf8 { hex, bad: error.error_len().unwrap_or(bad.len()) }
    })
}
