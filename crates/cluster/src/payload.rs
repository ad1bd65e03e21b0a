//! Payloads of other nodes, read under a schema.

use std::sync::Arc;

use internode::FailureReason;
use internode::payload::{LayoutOf, PayloadError};
use rows::codec::MutationDecoder;
use rows::{Layout, Mutation};
use schema::{Schema, TableId};
use types::Reader;

/// The layouts of a schema's tables by id.
pub(crate) fn layouts(schema: &Schema) -> impl Fn(&[u8; 16]) -> Option<Arc<Layout>> {
    |id| schema.table_by_id(&TableId(*id)).map(|table| Arc::clone(&table.layout))
}

/// What a payload is, all of it.
pub(crate) fn whole<T>(
    payload: &[u8],
    schema: &Schema,
    read: impl FnOnce(&mut Reader<'_>, &mut MutationDecoder, LayoutOf<'_>) -> Result<T, PayloadError>,
) -> Result<T, FailureReason> {
    let mut reader = Reader::new(payload);
    let value = read(&mut reader, &mut MutationDecoder::new(), &layouts(schema));
    let value = value.map_err(|error| error.reason())?;
    reader.finish().map_err(unreadable)?;
    Ok(value)
}

/// A mutation, all of the payload.
pub(crate) fn mutation(payload: &[u8], schema: &Schema) -> Result<Mutation, FailureReason> {
    whole(payload, schema, |reader, decoder, layout_of| Ok(decoder.mutation(reader, layout_of)?))
}

/// The table of a mutation's first update, which is all that is read of it.
pub(crate) fn first_table(payload: &[u8]) -> Option<TableId> {
    let mut reader = Reader::new(payload);
    reader.uvint().ok().filter(|updates| *updates > 0)?;
    reader.array().ok().map(TableId)
}

/// What a malformed payload is answered with.
pub(crate) fn unreadable(_: types::ReadError) -> FailureReason {
    FailureReason::Unknown
}
