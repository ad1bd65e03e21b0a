//! Columns of results and variables of prepared statements (specification, section 4.2.5.2 and
//! 4.2.5.4; `org.apache.cassandra.cql3.ResultSet`).

use crate::{
    class_name::ClassName,
    column::Column,
    digest::{Id, result_metadata_id},
    put, type_option,
    version::Version,
};

/// Bits of the flags of metadata.
pub(crate) mod flag {
    pub const GLOBAL_TABLES_SPEC: i32 = 0x01;
    pub const HAS_MORE_PAGES: i32 = 0x02;
    pub const NO_METADATA: i32 = 0x04;
    pub const METADATA_CHANGED: i32 = 0x08;
}

/// Are they all of one table? Its name then travels once.
fn one_table(columns: &[Column]) -> Option<&Column> {
    let first = columns.first()?;
    let same = |other: &Column| other.keyspace == first.keyspace && other.table == first.table;
    columns.iter().all(same).then_some(first)
}

/// Appends the columns as they follow counts and ids, and returns their flags.
fn write_columns(out: &mut Vec<u8>, columns: &[Column], version: Version, names: ClassName) -> i32 {
    let global = one_table(columns);
    if let Some(column) = global {
        put::string(out, &column.keyspace);
        put::string(out, &column.table);
    }
    for column in columns {
        if global.is_none() {
            put::string(out, &column.keyspace);
            put::string(out, &column.table);
        }
        put::string(out, &column.name);
        type_option::write(out, &column.cql_type, version, names);
    }
    if global.is_some() { flag::GLOBAL_TABLES_SPEC } else { 0 }
}

/// Metadata of a result, encoded once for every version; made when a statement is prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultMetadata {
    id: Id,
    count: i32,
    flags: i32,
    /// Encoded columns for versions 3, 4 and 5.
    encoded: [Box<[u8]>; 3],
}

impl ResultMetadata {
    /// Metadata of these columns.
    pub fn new(columns: &[Column], names: ClassName) -> Self {
        Self::with_id(columns, result_metadata_id(columns, names), names)
    }

    /// Metadata of these columns under an id that was computed elsewhere.
    pub fn with_id(columns: &[Column], id: Id, names: ClassName) -> Self {
        let mut flags = 0;
        let encoded = [Version::V3, Version::V4, Version::V5].map(|version| {
            let mut out = Vec::new();
            flags = write_columns(&mut out, columns, version, names);
            out.into_boxed_slice()
        });
        let count = i32::try_from(columns.len()).unwrap_or(i32::MAX);
        Self { id, count, flags, encoded }
    }

    /// Metadata of a statement that returns no rows: flag "no metadata", the MD5 of nothing as id.
    pub fn none() -> Self {
        let id = result_metadata_id(&[], crate::class_name::class_name);
        Self { id, count: 0, flags: flag::NO_METADATA, encoded: Default::default() }
    }

    /// Its id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Number of columns.
    pub fn column_count(&self) -> usize {
        self.count as usize
    }

    /// Appends flags, count, perhaps the new id, perhaps the columns; returns where the count
    /// ends, which is where a paging state goes.
    pub(crate) fn write(&self, out: &mut Vec<u8>, version: Version, form: MetadataForm) -> usize {
        let form = match form {
            MetadataForm::Changed if version < Version::V5 => MetadataForm::Full,
            form => form,
        };
        let flags = match form {
            MetadataForm::Full => self.flags,
            MetadataForm::Skipped => self.flags | flag::NO_METADATA,
            MetadataForm::Changed => self.flags | flag::METADATA_CHANGED,
        };
        put::i32(out, flags);
        put::i32(out, self.count);
        let paging_at = out.len();
        if form == MetadataForm::Changed {
            put::short_bytes(out, &self.id);
        }
        if flags & flag::NO_METADATA == 0 {
            let [v3, v4, v5] = &self.encoded;
            out.extend_from_slice(match version {
                Version::V3 => v3,
                Version::V4 => v4,
                Version::V5 | Version::V6 => v5,
            });
        }
        paging_at
    }
}

/// How much metadata goes with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataForm {
    /// All of it.
    Full,
    /// None: the client holds it and asked so.
    Skipped,
    /// All of it and its new id, because the client holds another (EXECUTE from version 5 on;
    /// before, the same as [`Self::Full`]).
    Changed,
}

/// Appends metadata of columns that nobody keeps; as [`ResultMetadata::write`] does in full.
pub(crate) fn write_once(
    out: &mut Vec<u8>,
    columns: &[Column],
    version: Version,
    names: ClassName,
) -> usize {
    let flags_at = out.len();
    put::i32(out, 0);
    put::i32(out, i32::try_from(columns.len()).unwrap_or(i32::MAX));
    let paging_at = out.len();
    let flags = write_columns(out, columns, version, names);
    put::patch_i32(out, flags_at, flags);
    paging_at
}

/// The variables of a prepared statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindMetadata {
    /// The variables in order.
    pub variables: Vec<Column>,
    /// Which of them are the partition key, in the order of the key; empty where not all of it is
    /// bound.
    pub partition_key: Vec<u16>,
}

impl BindMetadata {
    pub(crate) fn write(&self, out: &mut Vec<u8>, version: Version, names: ClassName) {
        let flags_at = out.len();
        put::i32(out, 0);
        put::i32(out, i32::try_from(self.variables.len()).unwrap_or(i32::MAX));
        if version >= Version::V4 {
            // of no use where several tables are written
            let indexes: &[u16] = match one_table(&self.variables) {
                Some(_) => &self.partition_key,
                None => &[],
            };
            put::i32(out, i32::try_from(indexes.len()).unwrap_or(i32::MAX));
            indexes.iter().for_each(|index| put::u16(out, *index));
        }
        let flags = write_columns(out, &self.variables, version, names);
        put::patch_i32(out, flags_at, flags);
    }
}
