//! Reading all of an SSTable for what its formats let be checked: before it is trusted, or when the operator asks.

use std::sync::Arc;

use crc32fast::Hasher;
use env::{Env, File, OpenOptions};
use schema::{Column, Table};
use sstable::checksum::parse_digest;
use sstable::descriptor::Component;
use types::CqlType;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::PartitionKey;
use crate::read::{Head, KeyWalk, SSTableCursor, Slices};
use crate::sstables::SSTable;

/// Bytes of the data that are read at a time for its digest.
const DIGEST_STEP: usize = 256 << 10;
/// No digest is larger.
const DIGEST_BYTES_MAX: u64 = 64;

/// Is an SSTable one of this table, are its bytes those that were written, and is all of it in order?
///
/// # Errors
/// If not, with the file that shows it.
pub(crate) async fn verify(
    engine: &Engine,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
) -> Result<(), StorageError> {
    check_header(table, sstable)?;
    check_digest(engine.env(), sstable).await?;
    read_all(engine, table, sstable).await
}

/// Are its key, its clustering and its columns the table's? Columns that the table has no more are passed over.
pub(crate) fn check_header(table: &Table, sstable: &SSTable) -> Result<(), StorageError> {
    let header = &sstable.table.statistics.header;
    let refused =
        |what: String| Err(StorageError::corrupt(sstable.path(&Component::Statistics), what));
    let key: Vec<CqlType> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
    let key = types::key_to_marshal_string(&key);
    if header.key_type != key {
        return refused(format!("its key is a {}, that of the table a {key}", header.key_type));
    }
    let (theirs, ours) = (&sstable.table.layout, &table.layout);
    if theirs.clustering != ours.clustering {
        let types = header.clustering_types.join(", ");
        return refused(format!("its clustering columns ({types}) are not those of the table"));
    }
    let columns = [(&theirs.statics, &table.statics), (&theirs.regulars, &table.regulars)];
    for (theirs, ours) in columns {
        for column in theirs.iter() {
            let same = ours.iter().find(|our| *our.name == *column.name);
            let fits = match same {
                Some(our) => is_like(&column.ty, our),
                None => table.dropped.contains_key(&*column.name),
            };
            if !fits {
                return refused(format!("the table has no column {} of its type", column.name));
            }
        }
    }
    Ok(())
}

/// A user type may have had fewer fields when the SSTable was written.
fn is_like(theirs: &CqlType, ours: &Column) -> bool {
    let has_user_type = |ty: &CqlType| ty.any(&mut |ty| matches!(ty, CqlType::Udt { .. }));
    *theirs == ours.ty || (has_user_type(theirs) && has_user_type(&ours.ty))
}

async fn check_digest(env: &Env, sstable: &SSTable) -> Result<(), StorageError> {
    let path = sstable.path(&Component::Digest);
    let text = match env.read_file(&path, DIGEST_BYTES_MAX).await {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StorageError::io("cannot read", path, error)),
    };
    let wanted = parse_digest(&text).map_err(|e| StorageError::corrupt(&path, e))?;
    let data = sstable.path(&Component::Data);
    let failed = |e| StorageError::io("cannot read", &data, e);
    let file = File::open(env, &data, OpenOptions::READ).await.map_err(failed)?;
    let (mut hasher, mut at, mut buffer) = (Hasher::new(), 0, Vec::with_capacity(DIGEST_STEP));
    loop {
        let (read, bytes) = file.read_at(buffer, at, DIGEST_STEP).await;
        let read = read.map_err(failed)?;
        if read == 0 {
            break;
        }
        hasher.update(bytes.get(..read).unwrap_or_default());
        at += read as u64;
        buffer = bytes;
        env.maybe_yield().await;
    }
    let found = hasher.finalize();
    match found == wanted {
        true => Ok(()),
        false => Err(StorageError::corrupt(data, format!("its digest is {found}, not {wanted}"))),
    }
}

/// Every partition by the index, every row and marker of it: blocks against their checksums, keys in order.
async fn read_all(
    engine: &Engine,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
) -> Result<(), StorageError> {
    let files = &engine.files;
    let corrupt = |what: &str| Err(StorageError::corrupt(sstable.path(&Component::Data), what));
    let mut walk = KeyWalk::start(files, sstable, None, false).await?;
    let mut last: Option<PartitionKey> = None;
    while let Some(Head { key, located }) = walk.take(files).await? {
        if last.as_ref().is_some_and(|last| *last >= key) {
            return corrupt("its partitions are out of order");
        }
        if !sstable.table.may_contain(key.token, &key.bytes) {
            return corrupt("a partition is outside of its keys, or its filter denies it");
        }
        let all = Slices::all(false);
        let cursor =
            SSTableCursor::open_at(files, sstable, key.as_ref(), located, table, all, false);
        let mut cursor = cursor.await?;
        while cursor.head().is_some() {
            cursor.advance(files).await?;
            engine.env().maybe_yield().await;
        }
        last = Some(key);
    }
    let (_, end) = sstable.table.index.keys();
    match last.is_some_and(|last| *last.bytes == *end) {
        true => Ok(()),
        false => corrupt("its last partition is not there"),
    }
}
