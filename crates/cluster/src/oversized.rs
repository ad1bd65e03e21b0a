//! What the log says of partitions and collections that are too large in an SSTable.

use cql::guard::violation;
use cql::permission::is_system;
use cql::select::key_values;
use rows::RowRef;
use schema::Column;
use storage::{Finding, Oversized};
use types::maybe_quote;

/// Why large partitions are not liked.
const LARGE: &str = "Too large partitions can cause performance problems.";
/// Why many tombstones are not liked.
const TOMBSTONES: &str = "Partitions with too many tombstones can cause performance problems.";

/// The line of the log; none where Cassandra does not look.
pub fn oversized(finding: &Finding<'_>) -> Option<String> {
    let Finding { value, threshold, is_failure, .. } = finding;
    let table = finding.table;
    let passed = format!(
        "this exceeds the {} threshold of {threshold}.",
        if *is_failure { "failure" } else { "warning" }
    );
    Some(match finding.what {
        Oversized::PartitionBytes => {
            let text = format!("Partition {} has size {value}, {passed}", partition(finding));
            violation("partition_size", Some(LARGE), &text)
        }
        Oversized::PartitionTombstones => {
            let text = format!("Partition {} has {value} tombstones, {passed}", partition(finding));
            violation("partition_tombstones", Some(TOMBSTONES), &text)
        }
        _ if is_system(&table.keyspace) => return None,
        Oversized::CollectionBytes(row, column) => {
            let text = format!(
                "Detected collection {} of size {value}, {passed}",
                at(finding, row, column)
            );
            violation("collection_size", None, &text)
        }
        Oversized::CollectionItems(row, column) => {
            let text = format!(
                "Detected collection {} with {value} items, {passed}",
                at(finding, row, column)
            );
            violation("items_per_collection", None, &text)
        }
    })
}

fn partition(finding: &Finding<'_>) -> String {
    let Finding { table, file, .. } = finding;
    let key = table.key_text(finding.key);
    format!("{}.{}:{key} on sstable {}", table.keyspace, table.name, file.display())
}

/// Where a collection is.
fn at(finding: &Finding<'_>, row: RowRef<'_>, column: &Column) -> String {
    let table = finding.table;
    let key = table.partition_key.iter().zip(key_values(table, finding.key));
    let clustering = table.clustering.iter().zip(0..row.clustering().len());
    let clustering = clustering
        .map(|(column, place)| (column, row.clustering().get(place).flatten().unwrap_or_default()));
    let literals: Vec<String> =
        key.chain(clustering).map(|(column, value)| column.ty.to_cql_literal(value)).collect();
    let literals = match literals.as_slice() {
        [one] => one.clone(),
        all => format!("({})", all.join(", ")),
    };
    let name = format!("{}.{}", maybe_quote(&table.keyspace), maybe_quote(&table.name));
    format!("{} in row {literals} in table {name}", column.name)
}
