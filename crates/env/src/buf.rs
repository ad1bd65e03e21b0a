//! Buffers that an operation of the disk owns until it ends.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment of [`AlignedBuf`] in memory and size, in bytes: what direct I/O asks for.
pub const ALIGNMENT: usize = 4096;

/// Bytes aligned to [`ALIGNMENT`], for direct I/O: a fixed capacity, of which the first `len`
/// count.
#[derive(Debug)]
pub struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
    capacity: usize,
}

impl AlignedBuf {
    /// An empty buffer that holds at least `capacity` bytes (rounded up to [`ALIGNMENT`]).
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1).next_multiple_of(ALIGNMENT);
        Self { start: allocate(capacity), len: 0, capacity }
    }

    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        let mut buf = Self::with_capacity(len);
        buf.len = len;
        buf
    }

    /// Bytes that fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes the first `len` bytes count (at most the capacity); those never written are zero.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.capacity);
    }

    /// Appends as many of `bytes` as fit; says how many.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.capacity - self.len);
        let at = self.len;
        self.len += n;
        if let (Some(to), Some(from)) = (self.get_mut(at..), bytes.get(..n)) {
            to.copy_from_slice(from);
        }
        n
    }

    /// Empties the buffer; its capacity stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

fn layout(capacity: usize) -> Layout {
    match Layout::from_size_align(capacity, ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => panic!("cannot allocate a buffer of {capacity} bytes"),
    }
}

#[expect(unsafe_code, reason = "std has no aligned vector")]
fn allocate(capacity: usize) -> NonNull<u8> {
    let layout = layout(capacity);
    // SAFETY: the size is at least ALIGNMENT, never zero.
    let start = unsafe { alloc_zeroed(layout) };
    NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout))
}

impl Drop for AlignedBuf {
    #[expect(unsafe_code, reason = "std has no aligned vector")]
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate` with the same layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[expect(unsafe_code, reason = "std has no aligned vector")]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len <= capacity`, all of it initialised (zeroed at first), owned by self.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    #[expect(unsafe_code, reason = "std has no aligned vector")]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[expect(unsafe_code, reason = "an owner of plain bytes may change threads")]
// SAFETY: it owns its memory alone, as Vec<u8> does.
unsafe impl Send for AlignedBuf {}

/// The buffers that file operations take and give back.
pub trait IoBuf: sealed::Sealed + Deref<Target = [u8]> + Sized + 'static {
    #[doc(hidden)]
    fn into_bytes(self) -> Bytes;
    #[doc(hidden)]
    fn from_bytes(bytes: Bytes) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for Vec<u8> {}
    impl Sealed for super::AlignedBuf {}
}

/// Either kind of buffer, as an operation in flight keeps it.
#[doc(hidden)]
#[derive(Debug)]
pub enum Bytes {
    Vec(Vec<u8>),
    Aligned(AlignedBuf),
}

impl IoBuf for Vec<u8> {
    fn into_bytes(self) -> Bytes {
        Bytes::Vec(self)
    }

    fn from_bytes(bytes: Bytes) -> Self {
        match bytes {
            Bytes::Vec(v) => v,
            Bytes::Aligned(a) => a.to_vec(),
        }
    }
}

impl IoBuf for AlignedBuf {
    fn into_bytes(self) -> Bytes {
        Bytes::Aligned(self)
    }

    fn from_bytes(bytes: Bytes) -> Self {
        match bytes {
            Bytes::Aligned(a) => a,
            Bytes::Vec(v) => {
                let mut a = Self::with_capacity(v.len());
                a.extend_from_slice(&v);
                a
            }
        }
    }
}

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Vec(v) => v,
            Self::Aligned(a) => a,
        }
    }

    /// Makes `len` bytes of room (all zero or old bytes), which then count.
    pub(crate) fn make_room(&mut self, len: usize) {
        match self {
            // Old bytes are good enough to read over: only growth costs a memset.
            Self::Vec(v) => v.resize(len, 0),
            Self::Aligned(a) if len <= a.capacity => a.len = len,
            Self::Aligned(a) => *a = AlignedBuf::zeroed(len),
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        match self {
            Self::Vec(v) => v,
            Self::Aligned(a) => a,
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Self::Vec(v) => v.truncate(len),
            Self::Aligned(a) => a.len = a.len.min(len),
        }
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::Vec(Vec::new())
    }
}
