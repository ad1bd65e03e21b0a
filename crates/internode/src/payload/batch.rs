//! BATCH_STORE (`batchlog.Batch`): a logged batch that other nodes keep until it is applied.

use types::{ReadError, Reader, Uuid, WriteBytes};

/// A batch. Its mutations stay as they were written: who keeps them need not understand them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// Its id, a time-UUID: what BATCH_REMOVE names.
    pub id: Uuid,
    /// When it was made, in microseconds since 1970.
    pub created: i64,
    /// Its mutations, encoded.
    pub mutations: Vec<&'a [u8]>,
}

impl<'a> Batch<'a> {
    /// Reads it.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        let id = Uuid::from_bytes(reader.array()?);
        let created = reader.i64()?;
        let count = reader.count(1)?;
        let mutations = (0..count).map(|_| reader.vint_bytes()).collect::<Result<_, _>>()?;
        Ok(Self { id, created, mutations })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put(&self.id.to_bytes());
        out.put_i64(self.created);
        out.put_uvint(self.mutations.len() as u64);
        for mutation in &self.mutations {
            out.put_vint_bytes(mutation);
        }
    }
}
