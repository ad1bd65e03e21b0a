//! What comes with a statement: consistency, values, paging, timestamps.

use crate::{
    consistency::Consistency,
    error::ProtocolError,
    paging_state::PagingState,
    put,
    reader::Reader,
    values::{Value, Values},
    version::Version,
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

    /// Writes them, as a client of a version sends them; what the version has no room for is left
    /// out. Values that came by name are put in the order of the statement's markers.
    pub fn write(&self, version: Version, markers: &[impl AsRef<str>], out: &mut Vec<u8>) {
        let mut flags = 0;
        let mut set = |bit, is_set| flags |= if is_set { bit } else { 0 };
        let is_five = version >= Version::V5;
        let serial = Some(self.serial_consistency).filter(|level| *level != Consistency::Serial);
        let page_size = self.page_size.filter(|size| *size >= 0);
        set(flag::VALUES, !self.values.is_empty());
        set(flag::SKIP_METADATA, self.skip_metadata);
        set(flag::PAGE_SIZE, page_size.is_some());
        set(flag::PAGING_STATE, self.paging_state.is_some());
        set(flag::SERIAL_CONSISTENCY, serial.is_some());
        set(flag::TIMESTAMP, self.timestamp.is_some());
        set(flag::KEYSPACE, is_five && self.keyspace.is_some());
        set(flag::NOW_IN_SECONDS, is_five && self.now_in_seconds.is_some());
        put::consistency(out, self.consistency);
        match is_five {
            true => out.extend_from_slice(&flags.to_be_bytes()),
            false => put::u8(out, flags as u8),
        }
        if !self.values.is_empty() {
            let by_name = |marker: &str| self.values.by_name(marker).unwrap_or(Value::Unset);
            let values: Vec<Value<'_>> = match self.values.is_named() {
                true => markers.iter().map(|marker| by_name(marker.as_ref())).collect(),
                false => self.values.iter().collect(),
            };
            put::count(out, values.len());
            for value in values {
                match value {
                    Value::Null => put::i32(out, put::NULL),
                    Value::Unset => put::i32(out, put::UNSET),
                    Value::Bytes(bytes) => put::bytes(out, bytes),
                }
            }
        }
        page_size.into_iter().for_each(|size| put::i32(out, size));
        if let Some(state) = &self.paging_state {
            let mut bytes = Vec::new();
            state.write(version, &mut bytes);
            put::bytes(out, &bytes);
        }
        serial.into_iter().for_each(|level| put::consistency(out, level));
        self.timestamp.into_iter().for_each(|timestamp| put::i64(out, timestamp));
        if is_five {
            self.keyspace.into_iter().for_each(|keyspace| put::string(out, keyspace));
            let now = self.now_in_seconds.into_iter();
            now.for_each(|now| out.extend_from_slice(&now.to_be_bytes()));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const NO_MARKERS: &[&str] = &[];

    /// What is written is read as it was, but that values by name have places.
    #[test]
    fn options_come_back() {
        for version in [Version::V3, Version::V4, Version::V5] {
            let mut sent = Vec::new();
            let full = QueryOptions {
                consistency: Consistency::LocalQuorum,
                serial_consistency: Consistency::LocalSerial,
                skip_metadata: true,
                page_size: Some(7),
                timestamp: Some(-4711),
                keyspace: Some("\u{e9}"),
                now_in_seconds: Some(1_795_989_621),
                ..QueryOptions::default()
            };
            full.write(version, NO_MARKERS, &mut sent);
            let read = QueryOptions::parse(&mut Reader::new(&sent), version).unwrap();
            let mut again = Vec::new();
            read.write(version, NO_MARKERS, &mut again);
            assert_eq!(sent, again);
            assert_eq!(read.page_size, full.page_size);
            assert_eq!(read.timestamp, full.timestamp);
            assert_eq!(read.serial_consistency, full.serial_consistency);
            assert_eq!(read.keyspace, full.keyspace.filter(|_| version >= Version::V5));
        }
        let named =
            [&[0, 1, 0x41, 0, 3][..], b"\0\x01a\0\0\0\x01x", b"\0\x01b\xff\xff\xff\xff"].concat();
        let named = [&named[..], b"\0\x01c\xff\xff\xff\xfe"].concat();
        let read = QueryOptions::parse(&mut Reader::new(&named), Version::V4).unwrap();
        let mut placed = Vec::new();
        read.write(Version::V4, &["b", "a", "c"], &mut placed);
        let values = b"\xff\xff\xff\xff\0\0\0\x01x\xff\xff\xff\xfe";
        assert_eq!(placed, [&[0, 1, 1, 0, 3][..], values].concat());
        let mut least = Vec::new();
        QueryOptions::default().write(Version::V4, NO_MARKERS, &mut least);
        assert_eq!(least, [0, 1, 0]);
    }
}
