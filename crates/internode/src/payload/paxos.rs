//! PAXOS_PREPARE, PROPOSE and COMMIT of Paxos v1 (`service.paxos.Commit`, `PrepareResponse`).

use rows::PartitionUpdate;
use rows::codec::{MutationDecoder, MutationEncoder};
use types::{Reader, Uuid, WriteBytes};

use super::{LayoutOf, PayloadError, WriteError};

/// A ballot, and what is proposed or was decided under it; nothing in a request for promises.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The ballot, a time-UUID.
    pub ballot: Uuid,
    /// What is to be written.
    pub update: PartitionUpdate,
}

impl Commit {
    /// Reads it.
    pub fn read(
        reader: &mut Reader<'_>,
        decoder: &mut MutationDecoder,
        layout_of: LayoutOf<'_>,
    ) -> Result<Self, PayloadError> {
        let ballot = Uuid::from_bytes(reader.array()?);
        Ok(Self { ballot, update: decoder.update(reader, layout_of)? })
    }

    /// Appends it.
    pub fn write(
        &self,
        encoder: &mut MutationEncoder,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        out.put(&self.ballot.to_bytes());
        Ok(encoder.update(&self.update, out)?)
    }
}

/// The answer to PAXOS_PREPARE.
#[derive(Clone, Debug)]
pub struct Promise {
    /// Is it promised?
    pub promised: bool,
    /// A proposal that may be decided already; without a promise, the later ballot that it is
    /// refused for.
    pub in_progress: Commit,
    /// The latest decided.
    pub committed: Commit,
}

impl Promise {
    /// Reads it.
    pub fn read(
        reader: &mut Reader<'_>,
        decoder: &mut MutationDecoder,
        layout_of: LayoutOf<'_>,
    ) -> Result<Self, PayloadError> {
        let promised = reader.bool()?;
        let in_progress = Commit::read(reader, decoder, layout_of)?;
        let committed = Commit::read(reader, decoder, layout_of)?;
        Ok(Self { promised, in_progress, committed })
    }

    /// Appends it.
    pub fn write(
        &self,
        encoder: &mut MutationEncoder,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        out.put_bool(self.promised);
        self.in_progress.write(encoder, out)?;
        self.committed.write(encoder, out)
    }
}
