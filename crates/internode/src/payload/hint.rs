//! HINT (`hints.HintMessage`): a write that a replica missed, for that replica or for one that
//! hands it on.

use types::{ReadError, Reader, Uuid, WriteBytes};

/// A hint. Its mutation stays as it was written: who hands it on need not understand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint<'a> {
    /// Who missed it.
    pub host: Uuid,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// The least `gc_grace_seconds` of its tables then: after that long it is worth nothing.
    pub gc_grace: i32,
    /// Its mutation, encoded.
    pub mutation: &'a [u8],
}

impl<'a> Hint<'a> {
    /// Reads it.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        let host = Uuid::from_bytes(reader.array()?);
        let mut hint = Reader::new(reader.vint_bytes()?);
        let (created, gc_grace) = (hint.i64()?, hint.uvint32()?);
        Ok(Self { host, created, gc_grace, mutation: hint.rest() })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put(&self.host.to_bytes());
        let mut head = Vec::new();
        head.put_i64(self.created);
        head.put_uvint32(self.gc_grace);
        out.put_uvint((head.len() + self.mutation.len()) as u64);
        out.put(&head);
        out.put(self.mutation);
    }
}
