//! What comes with a statement: consistency, values, paging, timestamps.

use crate::{
    consistency::Consistency, error::ProtocolError, paging_state::PagingState, reader::Reader,
    values::Values, version::Version,
};

/// Bits of the flags of query options (specification, section 4.1.4).
pub(crate) mod flag {
    pub const VALUES: u32 = 0x01;
    pub const SKIP_METADATA: u32 = 0x02;
    pub const PAGE_SIZE: u32 = 0x04;
    pub const PAGING_STATE: u32 = 0x08;
    pub const SERIAL_CONSISTENCY: u32 = 0x10;
    pub const TIMESTAMP: u32 = 0x20;
    pub const NAMES: u32 = 0x40;
    pub const KEYSPACE: u32 = 0x80;
    pub const NOW_IN_SECONDS: u32 = 0x100;
}

/// Options of QUERY, EXECUTE and BATCH (`org.apache.cassandra.cql3.QueryOptions`).
#[derive(Clone, Copy, Debug)]
pub struct QueryOptions<'a> {
    /// Consistency of the statement.
    pub consistency: Consistency,
    /// Consistency of the Paxos part of a conditional update; SERIAL unless sent.
    pub serial_consistency: Consistency,
    /// Bound values; those of a BATCH are with its entries.
    pub values: Values<'a>,
    /// The client holds the metadata of the result already.
    pub skip_metadata: bool,
    /// Rows per page; none and negative numbers mean all. Never 0 in QUERY and EXECUTE.
    pub page_size: Option<i32>,
    /// Where the previous page ended.
    pub paging_state: Option<PagingState<'a>>,
    /// Timestamp of the write, in microseconds of the Unix epoch.
    pub timestamp: Option<i64>,
    /// Keyspace to resolve unqualified names in, instead of the connection's.
    pub keyspace: Option<&'a str>,
    /// "Now" in seconds of the Unix epoch.
    pub now_in_seconds: Option<u32>,
}

impl Default for QueryOptions<'_> {
    fn default() -> Self {
        Self {
            consistency: Consistency::One,
            serial_consistency: Consistency::Serial,
            values: Values::EMPTY,
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }
}

impl<'a> QueryOptions<'a> {
    /// Reads options. As in Cassandra, flags of later versions count where the flags have room for
    /// them, and unknown flags are ignored.
    pub(crate) fn parse(reader: &mut Reader<'a>, version: Version) -> Result<Self, ProtocolError> {
        let consistency = reader.consistency()?;
        let flags = if version >= Version::V5 { reader.u32()? } else { u32::from(reader.u8()?) };
        let has = |bit| flags & bit != 0;
        let mut options = Self { consistency, ..Self::default() };
        options.skip_metadata = has(flag::SKIP_METADATA);
        if has(flag::VALUES) {
            options.values = Values::parse(reader, version, has(flag::NAMES))?;
        }
        if has(flag::PAGE_SIZE) {
            options.page_size = Some(reader.i32()?);
        }
        if has(flag::PAGING_STATE)
            && let Some(state) = reader.bytes()?
        {
            options.paging_state = Some(PagingState::parse(state, version)?);
        }
        if has(flag::SERIAL_CONSISTENCY) {
            options.serial_consistency = reader.consistency()?;
        }
        if has(flag::TIMESTAMP) {
            let timestamp = reader.i64()?;
            if timestamp == i64::MIN {
                return Err(ProtocolError::Timestamp);
            }
            options.timestamp = Some(timestamp);
        }
        if has(flag::KEYSPACE) {
            options.keyspace = Some(reader.string()?);
        }
        if has(flag::NOW_IN_SECONDS) {
            options.now_in_seconds = Some(reader.u32()?);
        }
        Ok(options)
    }

    /// Refuses a page size of zero, as QUERY and EXECUTE do and BATCH does not.
    pub(crate) fn check_page_size(self) -> Result<Self, ProtocolError> {
        if self.page_size == Some(0) { Err(ProtocolError::PageSize) } else { Ok(self) }
    }

    /// Rows per page where the client asked for pages.
    pub fn rows_per_page(&self) -> Option<u32> {
        self.page_size.and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0)
    }
}
