//! Rows of `system_schema` to and from mutations of crate `rows`: what peers send and storage
//! keeps.

use rows::{BoundKind, CellKind, Clustering, Deletion, RowBuilder, RowRef};

use crate::schema::Schema;
use crate::stored::rows::{SchemaCell, SchemaMutation, SchemaPartition, SchemaRow, Tombstone};
use crate::stored::table::SchemaTable;
use crate::table_id::TableId;

/// Why a mutation is none of `system_schema` that we understand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MutationError {
    /// The key is not the name of a keyspace.
    #[error("the key of a schema mutation is not UTF-8")]
    Key,
    /// The table is none that describes keyspaces.
    #[error("table {0} describes no schema")]
    Table(TableId),
    /// The table is not in the snapshot, or has not the column.
    #[error("system_schema.{0} has no column {1}")]
    Column(&'static str, String),
    /// Ranges other than prefixes, static rows, complex and counter cells do not occur in a schema.
    #[error("{what} in system_schema.{table}")]
    Unexpected {
        /// The table.
        table: &'static str,
        /// What was found.
        what: &'static str,
    },
}

impl Tombstone {
    fn from_deletion(deletion: Deletion) -> Option<Self> {
        let Deletion { marked_for_delete_at: timestamp, local_deletion_time } = deletion;
        (!deletion.is_live()).then_some(Self { timestamp, local_deletion_time })
    }

    fn to_deletion(self) -> Deletion {
        let Self { timestamp: marked_for_delete_at, local_deletion_time } = self;
        Deletion { marked_for_delete_at, local_deletion_time }
    }
}

impl SchemaMutation {
    /// From a mutation, a peer's or a stored one.
    pub fn from_mutation(mutation: &rows::Mutation) -> Result<Self, MutationError> {
        let key = std::str::from_utf8(mutation.key()).map_err(|_| MutationError::Key)?;
        let mut read = Self { keyspace: key.to_owned(), ..Self::default() };
        for update in mutation.updates() {
            let id = TableId(update.table);
            let table = SchemaTable::by_id(&id).ok_or(MutationError::Table(id))?;
            read.updates.insert(table, partition(table, update)?);
        }
        Ok(read)
    }

    /// As a mutation. `schema` gives the layouts of `system_schema`; a mutation of nothing is
    /// `None`.
    pub fn to_mutation(&self, schema: &Schema) -> Result<Option<rows::Mutation>, MutationError> {
        let mut mutation: Option<rows::Mutation> = None;
        let mut scratch = RowBuilder::new();
        for (table, partition) in &self.updates {
            let update = self.update(*table, partition, schema, &mut scratch)?;
            match &mut mutation {
                None => mutation = Some(rows::Mutation::new(update)),
                // of one key, and each table comes once: it cannot be handed back
                Some(mutation) => drop(mutation.push(update)),
            }
        }
        Ok(mutation)
    }

    fn update(
        &self,
        table: SchemaTable,
        partition: &SchemaPartition,
        schema: &Schema,
        scratch: &mut RowBuilder,
    ) -> Result<rows::PartitionUpdate, MutationError> {
        let missing = |column: &str| MutationError::Column(table.name(), column.to_owned());
        let definition = schema.table("system_schema", table.name()).ok_or_else(|| missing("*"))?;
        let layout = &definition.layout;
        let key = self.keyspace.as_bytes();
        let mut builder = rows::UpdateBuilder::new(definition.id.0, layout.clone(), key);
        if let Some(deletion) = partition.deletion {
            builder.delete_partition(deletion.to_deletion());
        }
        for (prefix, deletion) in &partition.prefixes {
            let prefix = Clustering::new(prefix.iter().map(|v| Some(v.as_slice())));
            let deletion = deletion.to_deletion();
            builder.delete_range(rows::RangeTombstone::of_prefix(prefix.as_ref(), deletion));
        }
        let mut row_builder = RowBuilder::new();
        for (clustering, row) in &partition.rows {
            build_row(layout, clustering, row, &mut row_builder).map_err(|name| missing(&name))?;
            builder.add(row_builder.finish_row(layout), scratch);
        }
        Ok(builder.finish(scratch))
    }
}

/// A row as those of crate `rows`, left in `builder` to be finished. An error is the name of a
/// column that there is not.
pub(crate) fn build_row(
    layout: &rows::Layout,
    clustering: &[Vec<u8>],
    row: &SchemaRow,
    builder: &mut RowBuilder,
) -> Result<(), String> {
    let clustering = Clustering::new(clustering.iter().map(|v| Some(v.as_slice())));
    builder.start_row(clustering.as_ref());
    if let Some(liveness) = row.liveness {
        builder.liveness(liveness);
    }
    if let Some(deletion) = row.deletion {
        builder.deletion(deletion.to_deletion());
    }
    for (name, cell) in &row.cells {
        let column = layout.find(false, name).ok_or_else(|| name.clone())?;
        builder.cell(cell.as_ref(column));
    }
    Ok(())
}

fn partition(
    table: SchemaTable,
    update: &rows::PartitionUpdate,
) -> Result<SchemaPartition, MutationError> {
    let unexpected = |what| MutationError::Unexpected { table: table.name(), what };
    if update.static_row().is_some() {
        return Err(unexpected("static row"));
    }
    let deletion = Tombstone::from_deletion(update.deletion);
    let mut partition = SchemaPartition { deletion, ..SchemaPartition::default() };
    for range in update.ranges.iter() {
        let (start, end) = (range.start.as_ref(), range.end.as_ref());
        let whole = start.kind == BoundKind::InclStart && end.kind == BoundKind::InclEnd;
        if !whole || !start.values.iter().eq(end.values.iter()) {
            return Err(unexpected("range deletion other than of a prefix"));
        }
        let prefix = start.values.iter().map(|v| v.unwrap_or_default().to_vec()).collect();
        if let Some(deletion) = Tombstone::from_deletion(range.deletion) {
            partition.prefixes.insert(prefix, deletion);
        }
    }
    for row in update.rows.iter() {
        let clustering = row.clustering();
        let clustering = clustering.iter().map(|v| v.unwrap_or_default().to_vec()).collect();
        partition.rows.insert(clustering, read_row(table, &update.layout, row)?);
    }
    Ok(partition)
}

fn read_row(
    table: SchemaTable,
    layout: &rows::Layout,
    row: RowRef<'_>,
) -> Result<SchemaRow, MutationError> {
    let unexpected = |what| MutationError::Unexpected { table: table.name(), what };
    let mut read = SchemaRow {
        deletion: Tombstone::from_deletion(row.deletion()),
        liveness: row.liveness(),
        ..SchemaRow::default()
    };
    for cell in row.cells() {
        let index = cell.column;
        let column = layout.regulars.get(usize::from(index));
        let missing = || MutationError::Column(table.name(), index.to_string());
        let name = column.ok_or_else(missing)?.name.to_string();
        let (timestamp, ttl) = (cell.timestamp, cell.ttl);
        let (value, local_deletion_time) = match cell.kind {
            CellKind::Live => (Some(cell.value.to_vec()), 0),
            CellKind::Expiring => (Some(cell.value.to_vec()), cell.local_deletion_time),
            CellKind::Tombstone => (None, cell.local_deletion_time),
            CellKind::ComplexDeletion => return Err(unexpected("complex cell")),
        };
        let kept = SchemaCell { timestamp, value, ttl, local_deletion_time };
        read.cells.insert(name, kept);
    }
    Ok(read)
}
