//! Mutations as records of the log: encoded, and refused where they are too large or cannot be
//! captured.

use std::cell::RefCell;

use rows::codec::MutationEncoder;
use rows::{Mutation, PartitionUpdate};
use schema::{Schema, TableId};

use crate::commitlog::RECORD_OVERHEAD_BYTES;
use crate::error::StorageError;
use crate::options::Options;

/// Characters of the keys of a mutation that is too large that are shown, beyond the first.
const TOP_KEYS_SHOWN: usize = 1024;

/// Encodes mutations, in buffers that it uses again.
#[derive(Default)]
pub(super) struct Encoder {
    encoder: RefCell<MutationEncoder>,
    tables: RefCell<Vec<TableId>>,
    bytes: RefCell<Vec<u8>>,
}

impl Encoder {
    /// A mutation's tables and bytes, to be given back.
    ///
    /// # Errors
    /// If it cannot be written in the messaging format.
    pub fn encode(&self, mutation: &Mutation) -> Result<(Vec<TableId>, Vec<u8>), StorageError> {
        let mut tables = self.tables.take();
        let mut bytes = self.bytes.take();
        tables.clear();
        bytes.clear();
        tables.extend(mutation.updates().iter().map(|update| TableId(update.table)));
        let encoded = self.encoder.borrow_mut().mutation(mutation, &mut bytes);
        encoded.map_err(|error| StorageError::Encode(error.to_string()))?;
        Ok((tables, bytes))
    }

    pub fn give_back(&self, tables: Vec<TableId>, bytes: Vec<u8>) {
        /// A buffer that one huge mutation grew is not kept.
        const KEEP_BYTES_MAX: usize = 256 << 10;
        self.tables.replace(tables);
        if bytes.capacity() <= KEEP_BYTES_MAX {
            self.bytes.replace(bytes);
        }
    }
}

/// Refuses a mutation that is too large.
pub(super) fn check_size(
    mutation: &Mutation,
    schema: &Schema,
    options: &Options,
) -> Result<(), StorageError> {
    /// A mutation takes less than so many times what it takes in memory.
    const ENCODED_PART: usize = 4;
    let max = options.mutation_bytes_max();
    let about: usize = mutation.updates().iter().map(PartitionUpdate::size).sum();
    if about.saturating_mul(ENCODED_PART) < max {
        return Ok(());
    }
    let mut bytes = Vec::new();
    let encoded = MutationEncoder::new().mutation(mutation, &mut bytes);
    encoded.map_err(|error| StorageError::Encode(error.to_string()))?;
    match bytes.len() + RECORD_OVERHEAD_BYTES {
        bytes if bytes > max => Err(oversized(mutation, schema, bytes, max)),
        _ => Ok(()),
    }
}

/// What is said of a mutation that is too large (`MutationExceededMaxSizeException`): its
/// partitions, the largest first.
pub(super) fn oversized(
    mutation: &Mutation,
    schema: &Schema,
    bytes: usize,
    max: usize,
) -> StorageError {
    let mut encoder = MutationEncoder::new();
    let mut keyspace = String::new();
    let mut keys: Vec<(usize, String)> = Vec::new();
    for update in mutation.updates() {
        let Some(table) = schema.table_by_id(&TableId(update.table)) else { continue };
        let mut alone = Vec::new();
        // of a mutation that was encoded already, each part can be
        let _ = encoder.mutation(&Mutation::new(update.clone()), &mut alone);
        keyspace.clone_from(&table.keyspace);
        let key = table.key_text(mutation.key());
        keys.push((alone.len(), format!("{}.{key}", table.name)));
    }
    keys.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let mut shown = String::new();
    let mut left = keys.len();
    for (_, key) in &keys {
        if left < keys.len() && shown.len() + key.len() + 2 > TOP_KEYS_SHOWN {
            break;
        }
        let comma = if shown.is_empty() { "" } else { ", " };
        shown = format!("{shown}{comma}{key}");
        left -= 1;
    }
    if left > 0 {
        shown = format!("{shown} and {left} more.");
    }
    StorageError::MutationTooLarge(format!(
        "Rejected an oversized mutation ({bytes}/{max}) for keyspace: {keyspace}. Top keys are: {shown}"
    ))
}

/// What is said of a mutation that is to be captured, when captured segments take so many bytes.
pub(super) fn not_captured(
    mutation: &Mutation,
    schema: &Schema,
    options: &Options,
    used: u64,
) -> StorageError {
    let table = mutation.updates().first();
    let table = table.and_then(|update| schema.table_by_id(&TableId(update.table)));
    let cdc = options.log.cdc.as_ref();
    StorageError::NotCaptured(format!(
        "Rejecting mutation to keyspace {}. Free up space in {} by processing CDC logs. Total CDC bytes on disk is \
         {used}.",
        table.map_or("", |table| table.keyspace.as_str()),
        cdc.map(|cdc| cdc.directory.display().to_string()).unwrap_or_default()
    ))
}
