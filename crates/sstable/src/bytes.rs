//! A reader over a component's bytes that cannot run past their end.

use crate::error::{Error, Result, corrupt};

/// Reads big-endian values from the front of a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    component: &'static str,
    bytes: &'a [u8],
    at: usize,
}

macro_rules! numbers {
    ($($name:ident $type:ty),*) => {$(
        #[doc = concat!("The next big-endian `", stringify!($type), "`.")]
        pub fn $name(&mut self) -> Result<$type> {
            Ok(<$type>::from_be_bytes(self.array()?))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// Over all of `bytes`; `component` is for error messages.
    pub fn new(component: &'static str, bytes: &'a [u8]) -> Self {
        Self { component, bytes, at: 0 }
    }

    numbers!(u8 u8, u16 u16, i32 i32, u32 u32, i64 i64, u64 u64, f64 f64);

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => Err(Error::Truncated { component: self.component, at: self.at, wanted: n }),
        }
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// A count of things of `size` bytes at least, checked against what is left.
    pub fn count(&mut self, size: usize) -> Result<usize> {
        let n = self.i32()?;
        match usize::try_from(n) {
            Ok(n) if n.checked_mul(size).is_some_and(|all| all <= self.left()) => Ok(n),
            _ => corrupt(
                self.component,
                format!("its {n} entries do not fit in the {} bytes left", self.left()),
            ),
        }
    }

    /// Text as Java's `writeUTF` writes it. Modified UTF-8 differs from UTF-8 in NUL and in
    /// what lies beyond 16 bits, and no class name or option has either.
    pub fn utf(&mut self) -> Result<&'a str> {
        let n = self.u16()?;
        let bytes = self.take(n.into())?;
        std::str::from_utf8(bytes).or_else(|_| corrupt(self.component, "a text is not UTF-8"))
    }

    /// Bytes with an `i32` in front that counts them.
    pub fn int_bytes(&mut self) -> Result<&'a [u8]> {
        let n = self.count(1)?;
        self.take(n)
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Everything must have been read.
    pub fn end(&self) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            n => corrupt(self.component, format!("{n} bytes follow its end")),
        }
    }
}

/// Appends text as Java's `writeUTF`; `None` if it has more than 65535 bytes.
#[must_use]
pub fn put_utf(out: &mut Vec<u8>, text: &str) -> Option<()> {
    out.extend(u16::try_from(text.len()).ok()?.to_be_bytes());
    out.extend(text.as_bytes());
    Some(())
}

/// Appends a length or a count as a Java `int`. What is counted in memory here never comes
/// near its limit.
pub fn put_int(out: &mut Vec<u8>, n: usize) {
    let n = i32::try_from(n).expect("a count or length in a component is below 2^31");
    out.extend(n.to_be_bytes());
}
