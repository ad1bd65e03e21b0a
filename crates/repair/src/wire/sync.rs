//! Replicas are asked to stream what they differ in, and answer.

use schema::TableId;
use types::{Address, Reader, TokenRange, WriteBytes};

use super::error::PayloadError;
use super::job::JobDescription;
use super::kinds::PreviewKind;
use super::parts::{Unwritable, count, put_count, put_ranges, ranges, table_id};

/// Bytes of a session's summary at least: two addresses, two counts.
const SESSION_BYTES_MIN: usize = 22;
/// Bytes of a table's summary.
const SUMMARY_BYTES: usize = 28;

/// A replica is to stream ranges with another (`SyncRequest`).
///
/// ```text
/// job, initiator, source, destination, count, ranges, i32 preview, bool asymmetric
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// The job.
    pub desc: JobDescription,
    /// Who coordinates the repair and gets the answer.
    pub initiator: Address,
    /// Who begins the streams: this node.
    pub source: Address,
    /// With whom.
    pub destination: Address,
    /// What they differ in.
    pub ranges: Vec<TokenRange>,
    /// Is anything sent?
    pub preview: PreviewKind,
    /// Does the source only fetch, and send nothing?
    pub is_asymmetric: bool,
}

impl SyncRequest {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        Ok(Self {
            desc: JobDescription::read(reader)?,
            initiator: Address::read(reader)?,
            source: Address::read(reader)?,
            destination: Address::read(reader)?,
            ranges: ranges(reader)?,
            preview: PreviewKind::read(reader.i32()?)?,
            is_asymmetric: reader.bool()?,
        })
    }

    /// Appends it.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.desc.write(out)?;
        for address in [self.initiator, self.source, self.destination] {
            address.write(out);
        }
        put_ranges(out, &self.ranges)?;
        out.put_i32(self.preview.number());
        out.put_bool(self.is_asymmetric);
        Ok(())
    }
}

/// What came of it (`SyncResponse`).
///
/// ```text
/// job, source, destination, bool success, count, summaries of sessions
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncResponse {
    /// The job.
    pub desc: JobDescription,
    /// As the request has it (`SyncNodePair.coordinator`).
    pub source: Address,
    /// As the request has it (`SyncNodePair.peer`).
    pub destination: Address,
    /// Do they agree now?
    pub is_success: bool,
    /// What was streamed, or would be.
    pub summaries: Vec<SessionSummary>,
}

impl SyncResponse {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let desc = JobDescription::read(reader)?;
        let (source, destination) = (Address::read(reader)?, Address::read(reader)?);
        let is_success = reader.bool()?;
        let count = count(reader, SESSION_BYTES_MIN)?;
        let summaries =
            (0..count).map(|_| SessionSummary::read(reader)).collect::<Result<_, _>>()?;
        Ok(Self { desc, source, destination, is_success, summaries })
    }

    /// Appends it.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.desc.write(out)?;
        self.source.write(out);
        self.destination.write(out);
        out.put_bool(self.is_success);
        put_count(out, self.summaries.len())?;
        self.summaries.iter().try_for_each(|summary| summary.write(out))
    }
}

/// What one session of streams moved (`streaming.SessionSummary`).
///
/// ```text
/// coordinator, peer, count, summaries received, count, summaries sent
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Who began it.
    pub coordinator: Address,
    /// With whom.
    pub peer: Address,
    /// What the coordinator of the session received.
    pub receiving: Vec<StreamSummary>,
    /// What it sent.
    pub sending: Vec<StreamSummary>,
}

impl SessionSummary {
    fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        Ok(Self {
            coordinator: Address::read(reader)?,
            peer: Address::read(reader)?,
            receiving: StreamSummary::read_all(reader)?,
            sending: StreamSummary::read_all(reader)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.coordinator.write(out);
        self.peer.write(out);
        StreamSummary::write_all(&self.receiving, out)?;
        StreamSummary::write_all(&self.sending, out)
    }
}

/// What is streamed of a table (`streaming.StreamSummary`).
///
/// ```text
/// table, i32 files, i64 bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSummary {
    /// The table.
    pub table: TableId,
    /// Files. A negative number is refused, and one over `i32::MAX` not written.
    pub files: u32,
    /// Bytes. A negative number is refused, and one over `i64::MAX` not written.
    pub bytes: u64,
}

impl StreamSummary {
    fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let (table, files, bytes) = (table_id(reader)?, reader.i32()?, reader.i64()?);
        Ok(Self {
            table,
            files: u32::try_from(files).map_err(|_| PayloadError::kind("count of files", files))?,
            bytes: u64::try_from(bytes).map_err(|_| PayloadError::kind("size of files", bytes))?,
        })
    }

    fn read_all(reader: &mut Reader<'_>) -> Result<Vec<Self>, PayloadError> {
        let count = count(reader, SUMMARY_BYTES)?;
        (0..count).map(|_| Self::read(reader)).collect()
    }

    fn write_all(summaries: &[Self], out: &mut Vec<u8>) -> Result<(), Unwritable> {
        put_count(out, summaries.len())?;
        for Self { table, files, bytes } in summaries {
            out.put(&table.0);
            put_count(out, *files as usize)?;
            let bytes = i64::try_from(*bytes);
            out.put_i64(bytes.map_err(|_| Unwritable::Count(usize::MAX))?);
        }
        Ok(())
    }
}
