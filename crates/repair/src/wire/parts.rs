//! What several payloads are made of.

use schema::TableId;
use thiserror::Error;
use types::{Address, ReadError, Reader, TokenRange, TooLong, Uuid, WriteBytes};

use super::error::PayloadError;

/// The flags of a range of tokens (`dht.AbstractBounds`): of tokens, the start not in it, the end
/// in it. Repair sends no other bounds.
const RANGE_FLAGS: u8 = 0x05;
/// Bytes of a range: flags, and two tokens behind their lengths.
const RANGE_BYTES: usize = 25;
/// Bytes of an address at least: size, IPv4 address, port.
const ADDRESS_BYTES_MIN: usize = 7;

/// A payload that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unwritable {
    /// A name is too long.
    #[error("a name is too long: {0}")]
    Name(#[from] TooLong),
    /// There are too many of something.
    #[error("{0} of something, more than a message takes")]
    Count(usize),
}

/// A count of what follows, each of `least` bytes or more.
pub(super) fn count(reader: &mut Reader<'_>, least: usize) -> Result<usize, ReadError> {
    let count = reader.i32()?;
    let fits = |count: &usize| count.saturating_mul(least) <= reader.remaining();
    let fits = usize::try_from(count).ok().filter(fits);
    fits.ok_or(ReadError::Length(count.into()))
}

pub(super) fn put_count(out: &mut Vec<u8>, count: usize) -> Result<(), Unwritable> {
    out.put_i32(i32::try_from(count).map_err(|_| Unwritable::Count(count))?);
    Ok(())
}

pub(super) fn uuid(reader: &mut Reader<'_>) -> Result<Uuid, ReadError> {
    reader.array().map(Uuid::from_bytes)
}

pub(super) fn table_id(reader: &mut Reader<'_>) -> Result<TableId, ReadError> {
    reader.array().map(TableId)
}

fn range(reader: &mut Reader<'_>) -> Result<TokenRange, PayloadError> {
    match reader.u8()? {
        RANGE_FLAGS => Ok(TokenRange::read(reader)?),
        flags => Err(PayloadError::kind("flags of a range", flags)),
    }
}

pub(super) fn ranges(reader: &mut Reader<'_>) -> Result<Vec<TokenRange>, PayloadError> {
    let count = count(reader, RANGE_BYTES)?;
    (0..count).map(|_| range(reader)).collect()
}

pub(super) fn put_ranges(out: &mut Vec<u8>, ranges: &[TokenRange]) -> Result<(), Unwritable> {
    put_count(out, ranges.len())?;
    for range in ranges {
        out.put_u8(RANGE_FLAGS);
        range.write(out);
    }
    Ok(())
}

pub(super) fn addresses(reader: &mut Reader<'_>) -> Result<Vec<Address>, ReadError> {
    let count = count(reader, ADDRESS_BYTES_MIN)?;
    (0..count).map(|_| Address::read(reader)).collect()
}
