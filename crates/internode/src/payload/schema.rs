//! SCHEMA_PUSH and the answer to SCHEMA_PULL (`schema.SchemaMutationsSerializer`): mutations of
//! `system_schema`.

use rows::Mutation;
use rows::codec::{MutationDecoder, MutationEncoder};
use types::{ReadError, Reader, WriteBytes};

use super::{LayoutOf, PayloadError, WriteError};

/// Bytes of a mutation at least: number of updates, table, length of the key, flags.
const LEAST_MUTATION: usize = 19;

/// Reads mutations of a schema.
pub fn read_schema(
    reader: &mut Reader<'_>,
    decoder: &mut MutationDecoder,
    layout_of: LayoutOf<'_>,
) -> Result<Vec<Mutation>, PayloadError> {
    let count = reader.i32()?;
    let fits = |count: &usize| count.saturating_mul(LEAST_MUTATION) <= reader.remaining();
    let fits = usize::try_from(count).ok().filter(fits);
    let count = fits.ok_or(ReadError::Length(count.into()))?;
    (0..count).map(|_| Ok(decoder.mutation(reader, layout_of)?)).collect()
}

/// Appends mutations of a schema.
pub fn write_schema(
    mutations: &[Mutation],
    encoder: &mut MutationEncoder,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    out.put_u32(mutations.len() as u32);
    Ok(mutations.iter().try_for_each(|mutation| encoder.mutation(mutation, out))?)
}
