//! What several messages are made of.

use schema::TableId;
use thiserror::Error;
use types::{ReadError, Reader, TooLong, Uuid, WriteBytes};

/// A message that cannot be written.
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

pub(super) fn put_count(out: &mut Vec<u8>, count: usize) -> Result<(), Unwritable> {
    out.put_i32(i32::try_from(count).map_err(|_| Unwritable::Count(count))?);
    Ok(())
}

pub(super) fn put_uuid(out: &mut Vec<u8>, uuid: Option<Uuid>) {
    out.put_bool(uuid.is_some());
    if let Some(uuid) = uuid {
        out.put(&uuid.to_bytes());
    }
}

pub(super) fn table(reader: &mut Reader<'_>) -> Result<TableId, ReadError> {
    reader.array().map(TableId)
}

pub(super) fn uuid(reader: &mut Reader<'_>) -> Result<Uuid, ReadError> {
    reader.array().map(Uuid::from_bytes)
}

pub(super) fn optional_uuid(reader: &mut Reader<'_>) -> Result<Option<Uuid>, ReadError> {
    match reader.bool()? {
        true => uuid(reader).map(Some),
        false => Ok(None),
    }
}
