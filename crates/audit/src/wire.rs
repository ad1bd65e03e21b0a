//! Values as Chronicle's `BinaryWire` has them (docs/formats/full-query-log.md).

/// Codes of values.
mod code {
    pub const BYTES_LENGTH8: u8 = 0x80;
    pub const BYTES_LENGTH16: u8 = 0x81;
    pub const BYTES_LENGTH32: u8 = 0x82;
    pub const U8_ARRAY: u8 = 0x8a;
    pub const I64_ARRAY: u8 = 0x8d;
    pub const PADDING32: u8 = 0x8e;
    pub const PADDING: u8 = 0x8f;
    pub const UINT8: u8 = 0xa1;
    pub const UINT16: u8 = 0xa2;
    pub const INT16: u8 = 0xa5;
    pub const INT32: u8 = 0xa6;
    pub const INT64: u8 = 0xa7;
    pub const TYPE_PREFIX: u8 = 0xb6;
    pub const TEXT: u8 = 0xb8;
    pub const EVENT: u8 = 0xb9;
    pub const NULL: u8 = 0xbb;
    pub const FIELD: u8 = 0xc0;
    pub const SHORT_TEXT: u8 = 0xe0;
}

/// A text of fewer bytes has its length in its code.
const SHORT_BYTES: usize = 32;
/// Bytes of the code and the length of a padding that is long.
const LONG_PADDING_BYTES: usize = 5;

/// Appends values; where something is aligned, to multiples of its file's offsets.
pub(crate) struct Wire<'a> {
    out: &'a mut Vec<u8>,
    /// The offset in the file of what `out` begins with.
    at: u64,
}

impl<'a> Wire<'a> {
    pub fn new(out: &'a mut Vec<u8>, at: u64) -> Self {
        Self { out, at }
    }

    /// The offset of what comes next.
    pub fn offset(&self) -> u64 {
        self.at + self.out.len() as u64
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// The name of a field, shorter than 32 bytes.
    pub fn field(&mut self, name: &str) -> &mut Self {
        debug_assert!(name.len() < SHORT_BYTES);
        self.out.push(code::FIELD + name.len() as u8);
        self.raw(name.as_bytes());
        self
    }

    /// The name of an event.
    pub fn event(&mut self, name: &str) -> &mut Self {
        self.out.push(code::EVENT);
        self.stop_bit(name.len());
        self.raw(name.as_bytes());
        self
    }

    /// The name of a type.
    pub fn type_prefix(&mut self, name: &str) -> &mut Self {
        self.out.push(code::TYPE_PREFIX);
        self.stop_bit(name.len());
        self.raw(name.as_bytes());
        self
    }

    /// Something nested, with its length before it.
    pub fn nested(&mut self, write: impl FnOnce(&mut Wire<'_>)) {
        self.out.push(code::BYTES_LENGTH32);
        let length_at = self.out.len();
        self.raw(&[0; 4]);
        write(&mut Wire { out: self.out, at: self.at });
        let length = (self.out.len() - length_at - 4) as u32;
        if let Some(place) = self.out.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    /// A length of seven bits a byte, the lowest first.
    fn stop_bit(&mut self, mut length: usize) {
        while length > 0x7f {
            self.out.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.out.push(length as u8);
    }

    /// A text in Java's modified UTF-8, but for its zero.
    pub fn text(&mut self, text: Option<&str>) {
        let Some(text) = text else {
            self.out.push(code::NULL);
            return;
        };
        let is_plain = text.bytes().all(|byte| byte < 0xf0);
        let modified = if is_plain { Vec::new() } else { modified(text) };
        let bytes = if is_plain { text.as_bytes() } else { &modified };
        match bytes.len() {
            length if length < SHORT_BYTES => self.out.push(code::SHORT_TEXT + length as u8),
            length => {
                self.out.push(code::TEXT);
                self.stop_bit(length);
            }
        }
        self.raw(bytes);
    }

    /// A number in as few bytes as its value needs.
    pub fn int(&mut self, value: i32) {
        match value {
            0..=0xff => self.raw(&[code::UINT8, value as u8]),
            0x100..=0x7fff => {
                self.out.push(code::INT16);
                self.raw(&(value as u16).to_le_bytes());
            }
            0x8000..=0xffff => {
                self.out.push(code::UINT16);
                self.raw(&(value as u16).to_le_bytes());
            }
            _ => {
                self.out.push(code::INT32);
                self.raw(&value.to_le_bytes());
            }
        }
    }

    /// A number of eight bytes.
    pub fn long(&mut self, value: i64) {
        self.out.push(code::INT64);
        self.raw(&value.to_le_bytes());
    }

    /// A number of eight bytes whose value may change, and so stands at a multiple of eight.
    pub fn aligned_long(&mut self, value: i64) {
        self.pad_before_aligned();
        self.long(value);
    }

    /// An array of numbers that may change: its capacity, how many are used, and all of them.
    pub fn array(&mut self, capacity: usize, values: &[i64]) {
        self.pad_before_aligned();
        self.out.push(code::I64_ARRAY);
        self.raw(&(capacity as u64).to_le_bytes());
        self.raw(&(values.len() as u64).to_le_bytes());
        for value in values {
            self.raw(&value.to_le_bytes());
        }
        self.out.resize(self.out.len() + 8 * capacity.saturating_sub(values.len()), 0);
    }

    /// Bytes, and what they are.
    pub fn bytes(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else {
            self.out.push(code::NULL);
            return;
        };
        match bytes.len() + 1 {
            length if length <= 0xff => self.raw(&[code::BYTES_LENGTH8, length as u8]),
            length if length <= 0xffff => {
                self.out.push(code::BYTES_LENGTH16);
                self.raw(&(length as u16).to_le_bytes());
            }
            length => {
                self.out.push(code::BYTES_LENGTH32);
                self.raw(&(length as u32).to_le_bytes());
            }
        }
        self.out.push(code::U8_ARRAY);
        self.raw(bytes);
    }

    /// Padding, so that what follows a code of one byte stands at a multiple of eight.
    fn pad_before_aligned(&mut self) {
        let missing = (8 - (self.offset() + 1) % 8) % 8;
        self.pad(missing as usize);
    }

    /// Padding of so many bytes.
    pub fn pad(&mut self, bytes: usize) {
        match bytes.checked_sub(LONG_PADDING_BYTES) {
            Some(more) => {
                self.out.push(code::PADDING32);
                self.raw(&(more as u32).to_le_bytes());
                self.out.resize(self.out.len() + more, 0);
            }
            None => self.out.resize(self.out.len() + bytes, code::PADDING),
        }
    }
}

/// Characters beyond U+FFFF are two of three bytes each, as Java encodes them.
fn modified(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 2);
    for unit in text.encode_utf16() {
        match unit {
            0..=0x7f => out.push(unit as u8),
            0x80..=0x7ff => out.extend([0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8]),
            _ => out.extend([
                0xe0 | (unit >> 12) as u8,
                0x80 | (unit >> 6 & 0x3f) as u8,
                0x80 | (unit & 0x3f) as u8,
            ]),
        }
    }
    out
}
