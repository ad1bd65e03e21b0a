//! Bound values of a request: checked once, then read in place.

use crate::{error::ProtocolError, put, reader::Reader, version::Version};

/// One bound value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// Not set: leave the column alone (version 4 on).
    Unset,
    /// Serialized bytes, possibly none.
    Bytes(&'a [u8]),
}

/// Values whose offset is kept, so that reading them by index costs nothing; later ones are
/// reached by walking on from the last of these.
const KEPT_OFFSETS: usize = 16;

/// The values of a statement, by position or by name.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The values as they came, without their count; every length in it is checked.
    bytes: &'a [u8],
    count: u16,
    named: bool,
    version: Version,
    offsets: [u32; KEPT_OFFSETS],
}

impl<'a> Values<'a> {
    /// No values.
    pub const EMPTY: Values<'static> = Values {
        bytes: &[],
        count: 0,
        named: false,
        version: Version::CURRENT,
        offsets: [0; KEPT_OFFSETS],
    };

    /// Reads and checks a count and that many values.
    pub(crate) fn parse(
        reader: &mut Reader<'a>,
        version: Version,
        named: bool,
    ) -> Result<Self, ProtocolError> {
        let count = reader.u16()?;
        let bytes = reader.rest();
        let mut offsets = [0; KEPT_OFFSETS];
        for index in 0..usize::from(count) {
            if let Some(offset) = offsets.get_mut(index) {
                *offset = (bytes.len() - reader.remaining()) as u32;
            }
            if named {
                reader.string()?;
            }
            value(reader, version)?;
        }
        let bytes = bytes.get(..bytes.len() - reader.remaining()).unwrap_or_default();
        Ok(Self { bytes, count, named, version, offsets })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Do they carry names?
    pub fn is_named(&self) -> bool {
        self.named && self.count > 0
    }

    /// The value at `index`: at once for the first 16, else by walking.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        let kept = self.offsets.get(index).filter(|_| index < self.len() && !self.named);
        if let Some(offset) = kept {
            let rest = self.bytes.get(*offset as usize..)?;
            return value(&mut Reader::new(rest), self.version).ok();
        }
        self.from(index).next().map(|(_, value)| value)
    }

    /// The value of this name.
    pub fn by_name(&self, name: &str) -> Option<Value<'a>> {
        self.named().find(|(candidate, _)| *candidate == name).map(|(_, value)| value)
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        self.from(0).map(|(_, value)| value)
    }

    /// The values in order with their names; names are empty where values are positional.
    pub fn named(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        self.from(0)
    }

    fn from(&self, index: usize) -> Iter<'a> {
        let kept = index.min(KEPT_OFFSETS - 1);
        let iter = match self.offsets.get(kept) {
            Some(offset) if kept < self.len() => Iter {
                reader: Reader::new(self.bytes.get(*offset as usize..).unwrap_or_default()),
                left: self.count - kept as u16,
                named: self.named,
                version: self.version,
            },
            _ => {
                Iter { reader: Reader::new(&[]), left: 0, named: self.named, version: self.version }
            }
        };
        iter.advance(index - kept)
    }
}

#[derive(Clone, Debug)]
struct Iter<'a> {
    reader: Reader<'a>,
    left: u16,
    named: bool,
    version: Version,
}

impl Iter<'_> {
    fn advance(mut self, count: usize) -> Self {
        for _ in 0..count {
            self.next();
        }
        self
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = if self.named { self.reader.string().ok()? } else { "" };
        Some((name, value(&mut self.reader, self.version).ok()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

fn value<'a>(reader: &mut Reader<'a>, version: Version) -> Result<Value<'a>, ProtocolError> {
    let length = reader.i32()?;
    match usize::try_from(length) {
        Ok(size) => reader.value(length, size).map(Value::Bytes),
        Err(_) if version < Version::V4 || length == put::NULL => Ok(Value::Null),
        Err(_) if length == put::UNSET => Ok(Value::Unset),
        Err(_) => Err(ProtocolError::ValueLength(length)),
    }
}
