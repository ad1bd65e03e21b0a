//! How to open a file.

/// How to open a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open for reading.
    pub read: bool,
    /// Open for writing.
    pub write: bool,
    /// Create the file if there is none.
    pub create: bool,
    /// Create the file; fail if there is one.
    pub create_new: bool,
    /// Cut an existing file to nothing.
    pub truncate: bool,
    /// Pass the page cache by (O_DIRECT): offsets, lengths and memory aligned to
    /// [`ALIGNMENT`](crate::ALIGNMENT). File systems without it get buffered I/O.
    pub direct: bool,
}

impl OpenOptions {
    /// For reading.
    pub const READ: Self = Self {
        read: true,
        write: false,
        create: false,
        create_new: false,
        truncate: false,
        direct: false,
    };
    /// For reading and writing, created if missing.
    pub const READ_WRITE: Self = Self { write: true, create: true, ..Self::READ };
    /// For reading and writing, and it must not exist.
    pub const CREATE_NEW: Self = Self { write: true, create_new: true, ..Self::READ };

    /// The same with direct I/O.
    pub const fn direct(self) -> Self {
        Self { direct: true, ..self }
    }
}
