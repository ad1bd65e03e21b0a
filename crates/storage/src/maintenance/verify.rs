//! Reading all of an SSTable for what its formats let be checked: before it is trusted, or when the
//! operator asks.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crc32fast::Hasher;
use env::{Env, File, OpenOptions};
use rows::Layout;
use schema::{Column, Table, TableId};
use sstable::checksum::parse_digest;
use sstable::descriptor::{Component, Descriptor, Version};
use sstable::statistics::HeaderComponent;
use types::{CqlType, Token};

use crate::compaction::{Compactions, Pace, RunningCompaction, doubt};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::PartitionKey;
use crate::node_tables::NodeTables;
use crate::read::{Head, Keeping, KeyWalk, PIECE_BYTES, SSTableCursor, Slices};
use crate::sstables::SSTable;

/// Bytes of the data that are read at a time for its digest.
const DIGEST_STEP: usize = 256 << 10;
/// No digest is larger.
const DIGEST_BYTES_MAX: u64 = 64;

/// How much of an SSTable is looked at: each of these with all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Its small components, and whether it is one of its table.
    Header,
    /// The keys in its index.
    Index,
    /// All bytes of its data against their digest; where there is none, as the next.
    Digest,
    /// All that its data say.
    Rows,
}

/// How to verify SSTables.
#[derive(Clone, Debug)]
pub struct Verify {
    /// How much is looked at.
    pub depth: Depth,
    /// Each must be of the version that the node writes.
    pub check_version: bool,
    /// One that is damaged does not count as repaired any more.
    pub mutate_repaired: bool,
    /// Keys must be in one of these ranges, if there are any.
    pub owned: Vec<Owned>,
}

/// A range of the ring that this node has: from after its first token up to its second, to the
/// ring's end if that is [`Token::MIN`].
pub type Owned = (Token, Token);

/// Verifies SSTables.
pub struct Verifier {
    tables: Rc<NodeTables>,
    /// What is verified is shown among them, and keeps to their throughput.
    compactions: Rc<Compactions>,
}

impl Verifier {
    pub(crate) fn new(tables: &Rc<NodeTables>, compactions: &Rc<Compactions>) -> Rc<Self> {
        Rc::new(Self { tables: Rc::clone(tables), compactions: Rc::clone(compactions) })
    }

    /// Verifies all SSTables of a table, read anew from the disk: the data files of those that are
    /// damaged, with why.
    ///
    /// # Errors
    /// If the table is unknown, or the operator stopped it.
    pub async fn verify(
        &self,
        id: TableId,
        how: Verify,
    ) -> Result<Vec<(PathBuf, StorageError)>, StorageError> {
        let engine = self.tables.engine()?;
        let table = engine.store(id)?.table();
        // Who holds these keeps their files from going.
        let live = self.tables.table(id).live();
        let mut damaged = Vec::new();
        for sstable in live.tables() {
            let (from, descriptor) = (&sstable.directory, &sstable.table.descriptor);
            let path = sstable.path(&Component::Data);
            let verdict = match other_version(descriptor, engine.options.sstable_version)
                .filter(|_| how.check_version)
            {
                Some(what) => Err(StorageError::Refused { path: path.clone(), what }),
                None => {
                    self.inspect(&engine, &table, from, descriptor, (how.depth, &how.owned)).await
                }
            };
            let Err(error) = verdict else { continue };
            if matches!(error, StorageError::Interrupted | StorageError::Stopping(_)) {
                return Err(error);
            }
            if how.mutate_repaired && matches!(error, StorageError::Corrupt { .. }) {
                doubt(&self.compactions, id, sstable).await?;
            }
            damaged.push((path, error));
        }
        Ok(damaged)
    }

    /// Opens an SSTable of a directory, anew, and verifies it.
    ///
    /// # Errors
    /// If it is damaged or is of another table, with the file that shows it.
    pub(crate) async fn inspect(
        &self,
        engine: &Engine,
        table: &Arc<Table>,
        from: &Path,
        descriptor: &Descriptor,
        (depth, owned): (Depth, &[Owned]),
    ) -> Result<(), StorageError> {
        let (env, number) = (engine.env(), self.tables.next_number());
        let opened = SSTable::open(env, from, descriptor, number, table.is_counter());
        let sstable = Arc::new(opened.await?);
        let unique = env.unique_micros();
        let passes = if depth == Depth::Rows { 2 } else { 1 };
        let (shown, throttle) = self.compactions.pace();
        let running = shown.show(RunningCompaction {
            id: types::Uuid::from_unix_micros(unique, env.random_u64()).to_bytes(),
            table: table.id,
            kind: "Verify",
            total: sstable.table.data_length * passes,
            written: Cell::new(0),
            sstables: 1,
            directory: from.to_path_buf(),
            inputs: Vec::new(),
            stop: Rc::default(),
        });
        let mut pace = Pace::new(env, throttle, running.shown());
        let verdict = verify(engine, table, &sstable, (depth, owned), &mut pace).await;
        engine.files.forget(number);
        verdict
    }
}

/// What is said of an SSTable that is not of the version that the node writes.
fn other_version(descriptor: &Descriptor, written: Version) -> Option<String> {
    let Descriptor { version, format, .. } = *descriptor;
    let own = written.index_format();
    if version == written {
        return None;
    }
    Some(match format == own && version < written {
        // Cassandra's words
        true => "not the latest version, run upgradesstables".to_owned(),
        false => format!(
            "of version {version}-{format}, and the node writes {written}-{own}; run \
             upgradesstables"
        ),
    })
}

/// Is an SSTable one of this table, and, as deep as one looks, are its bytes those that were
/// written and all in order?
async fn verify(
    engine: &Engine,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
    (depth, owned): (Depth, &[Owned]),
    pace: &mut Pace<'_>,
) -> Result<(), StorageError> {
    check_header(table, sstable)?;
    if depth >= Depth::Index {
        read_keys(engine, sstable, owned).await?;
    }
    let has_digest = depth >= Depth::Digest && check_digest(engine.env(), sstable, pace).await?;
    if depth == Depth::Rows || (depth == Depth::Digest && !has_digest) {
        read_all(engine, table, sstable, pace).await?;
    }
    Ok(())
}

/// Are its key, its clustering and its columns the table's?
fn check_header(table: &Table, sstable: &SSTable) -> Result<(), StorageError> {
    let header = &sstable.table.statistics.header;
    let fits = fits(table, header, &sstable.table.layout);
    fits.map_err(|what| StorageError::corrupt(sstable.path(&Component::Statistics), what))
}

/// Are rows with this header, of which this is the layout, rows of the table? Columns that the
/// table has no more are passed over.
///
/// # Errors
/// If not: why.
pub(crate) fn fits(table: &Table, header: &HeaderComponent, theirs: &Layout) -> Result<(), String> {
    let key: Vec<CqlType> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
    let key = types::key_to_marshal_string(&key);
    if header.key_type != key {
        return Err(format!(
            "its partition key is of type {}, that of the table of type {key}",
            header.key_type
        ));
    }
    let ours = &table.layout;
    if theirs.clustering != ours.clustering {
        let types = header.clustering_types.join(", ");
        return Err(format!("its clustering columns ({types}) differ from those of the table"));
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
                return Err(format!(
                    "its column {} is not in the table, or has another type there",
                    column.name
                ));
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

/// False if there is no digest.
async fn check_digest(
    env: &Env,
    sstable: &SSTable,
    pace: &mut Pace<'_>,
) -> Result<bool, StorageError> {
    let path = sstable.path(&Component::Digest);
    let text = match env.read_file(&path, DIGEST_BYTES_MAX).await {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
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
        hasher.update(bytes.get(..read).expect("a read fills no more than its buffer"));
        at += read as u64;
        buffer = bytes;
        pace.at(at, 0).await?;
        env.maybe_yield().await;
    }
    let found = hasher.finalize();
    match found == wanted {
        true => Ok(true),
        false => Err(StorageError::corrupt(
            data,
            format!("its checksum is {found}, the one in Digest.crc32 is {wanted}"),
        )),
    }
}

/// Every key of the index, in order up to the last.
async fn read_keys(
    engine: &Engine,
    sstable: &Arc<SSTable>,
    owned: &[Owned],
) -> Result<(), StorageError> {
    let files = &engine.files;
    let mut walk = KeyWalk::start(files, sstable, None, false).await?;
    let mut last = None;
    while let Some(Head { key, .. }) = walk.take(files).await? {
        check_key(sstable, last.as_ref(), &key)?;
        check_owned(sstable, &key, owned)?;
        last = Some(key);
        engine.env().maybe_yield().await;
    }
    check_last(sstable, last.as_ref())
}

/// Every partition by the index, every row and marker of it: blocks against their checksums, keys
/// in order.
async fn read_all(
    engine: &Engine,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
    pace: &mut Pace<'_>,
) -> Result<(), StorageError> {
    let files = &engine.files;
    let stored = sstable.table.data_length;
    let share = stored as f64 / sstable.table.uncompressed_length().max(1) as f64;
    let mut walk = KeyWalk::start(files, sstable, None, false).await?;
    let keeping = Keeping::pass(PIECE_BYTES);
    let mut last = None;
    while let Some(Head { key, located }) = walk.take(files).await? {
        check_key(sstable, last.as_ref(), &key)?;
        pace.at(stored + (located.position as f64 * share) as u64, 0).await?;
        let (all, keeping) = (Slices::all(false), keeping.clone());
        let cursor =
            SSTableCursor::open_at(files, sstable, key.as_ref(), located, table, all, keeping);
        let mut cursor = cursor.await?;
        while cursor.head().is_some() {
            cursor.advance(files).await?;
            engine.env().maybe_yield().await;
        }
        last = Some(key);
    }
    check_last(sstable, last.as_ref())
}

/// Is a key this node's?
fn check_owned(sstable: &SSTable, key: &PartitionKey, owned: &[Owned]) -> Result<(), StorageError> {
    let token = key.token;
    let is_in = |(from, to): &Owned| *from < token && (token <= *to || *to == Token::MIN);
    match owned.is_empty() || owned.iter().any(is_in) {
        true => Ok(()),
        false => {
            let hex: String = key.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let what =
                format!("Key DecoratedKey({token}, {hex}) is not contained in the given ranges");
            Err(StorageError::corrupt(sstable.path(&Component::Data), what))
        }
    }
}

fn check_key(
    sstable: &SSTable,
    last: Option<&PartitionKey>,
    key: &PartitionKey,
) -> Result<(), StorageError> {
    let corrupt = |what: &str| Err(StorageError::corrupt(sstable.path(&Component::Data), what));
    if last.is_some_and(|last| last >= key) {
        return corrupt("its partitions are out of order");
    }
    match sstable.table.may_contain(key.token, &key.bytes) {
        true => Ok(()),
        false => corrupt(
            "a key of its index is not between its first and last key, or not in its bloom \
                 filter",
        ),
    }
}

fn check_last(sstable: &SSTable, last: Option<&PartitionKey>) -> Result<(), StorageError> {
    let (_, end) = sstable.table.index.keys();
    match last.is_some_and(|last| *last.bytes == *end) {
        true => Ok(()),
        false => {
            let what = "its last partition is missing";
            Err(StorageError::corrupt(sstable.path(&Component::Data), what))
        }
    }
}

#[cfg(test)]
mod tests {
    use sstable::descriptor::{DA, NB, OA};

    use super::*;

    #[test]
    fn a_newer_version_is_not_told_to_be_an_old_one() {
        let said = |name: &str| {
            let (descriptor, _) = Descriptor::parse(name).unwrap();
            other_version(&descriptor, NB)
        };
        assert_eq!(said("nb-1-big-Data.db"), None);
        let old = "not the latest version, run upgradesstables";
        assert_eq!(said("na-1-big-Data.db").as_deref(), Some(old));
        for (name, version) in [("oa-1-big-Data.db", "oa-big"), ("da-1-bti-Data.db", "da-bti")] {
            let text = said(name).unwrap();
            assert!(text.contains(version) && text.contains("nb-big"), "{text}");
            assert!(!text.contains("latest"), "{text}");
        }
        let (nb, _) = Descriptor::parse("nb-1-big-Data.db").unwrap();
        assert_eq!(other_version(&nb, OA).as_deref(), Some(old));
        assert!(other_version(&nb, DA).unwrap().contains("da-bti"));
    }
}
