//! STARTUP requests: options, and what they settle.

use crate::{
    compression::Compression, decoder::Started, error::ProtocolError, reader::Reader,
    version::Version,
};

/// Longest part of an option's value that an error quotes, in bytes.
const MAX_QUOTED: usize = 64;

/// The options of a STARTUP request, in place. Keys are matched in any case.
#[derive(Clone, Copy, Debug)]
pub struct Startup<'a> {
    bytes: &'a [u8],
    count: u16,
}

impl<'a> Startup<'a> {
    /// Key of the version of CQL, the one option that must be there.
    pub const CQL_VERSION: &'static str = "CQL_VERSION";
    /// Key of the compression.
    pub const COMPRESSION: &'static str = "COMPRESSION";
    /// Key under which SUPPORTED lists versions of the protocol.
    pub const PROTOCOL_VERSIONS: &'static str = "PROTOCOL_VERSIONS";
    /// Key of the driver's name.
    pub const DRIVER_NAME: &'static str = "DRIVER_NAME";
    /// Key of the driver's version.
    pub const DRIVER_VERSION: &'static str = "DRIVER_VERSION";
    /// Key whose value "1" asks for errors rather than back-pressure.
    pub const THROW_ON_OVERLOAD: &'static str = "THROW_ON_OVERLOAD";

    pub(crate) fn parse(reader: &mut Reader<'a>) -> Result<Self, ProtocolError> {
        let count = reader.u16()?;
        let bytes = reader.rest();
        for _ in 0..count {
            reader.string()?;
            reader.string()?;
        }
        Ok(Self { bytes, count })
    }

    /// Keys and values in order.
    pub fn options(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        (0..self.count).map_while(move |_| Some((reader.string().ok()?, reader.string().ok()?)))
    }

    /// The value of a key; of the last one, should it be there twice.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let values = self.options().filter(|(candidate, _)| candidate.eq_ignore_ascii_case(key));
        values.map(|(_, value)| value).last()
    }

    /// Does the client want OVERLOADED errors rather than back-pressure?
    pub fn throw_on_overload(&self) -> bool {
        self.get(Self::THROW_ON_OVERLOAD) == Some("1")
    }

    /// Checks the options and settles compression for a connection of this version.
    pub fn negotiate(&self, version: Version) -> Result<Started, ProtocolError> {
        let cql = self.get(Self::CQL_VERSION).ok_or(ProtocolError::MissingCqlVersion)?;
        check_cql_version(cql)?;
        let compression = match self.get(Self::COMPRESSION) {
            None => None,
            Some(name) if name.eq_ignore_ascii_case(Compression::Lz4.name()) => {
                Some(Compression::Lz4)
            }
            Some(name) if name.eq_ignore_ascii_case(Compression::Snappy.name()) => {
                if version >= Version::V5 {
                    return Err(ProtocolError::SnappyInV5);
                }
                Some(Compression::Snappy)
            }
            Some(name) => {
                return Err(ProtocolError::UnknownCompression(quote(name).to_lowercase()));
            }
        };
        Ok(Started { version, compression })
    }
}

/// Versions before 2.99 are of CQL 2; what follows the numbers is not looked at.
fn check_cql_version(text: &str) -> Result<(), ProtocolError> {
    let bad = || ProtocolError::BadCqlVersion(quote(text).to_owned());
    let mut numbers = text.split(['.', '-', '+', '~']);
    let major: u32 = numbers.next().and_then(|part| part.parse().ok()).ok_or_else(bad)?;
    let minor: u32 = numbers.next().and_then(|part| part.parse().ok()).ok_or_else(bad)?;
    if (major, minor) < (2, 99) {
        return Err(ProtocolError::OldCqlVersion(quote(text).to_owned()));
    }
    Ok(())
}

fn quote(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_QUOTED)).unwrap_or_default()
}
