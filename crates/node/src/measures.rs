//! What the shards measure of each table, put together.

use std::collections::BTreeMap;
use std::rc::Rc;

use cluster::Shard;
use metrics::Distribution;
use schema::TableId;
use storage::shards::Stopping;
use storage::{Engine, Measure};

use crate::all_shards::ask_all;

/// All shards' distributions of a measure, by table.
///
/// # Errors
/// If a shard ends first.
pub(crate) async fn measured_by_all(
    shard: &Shard,
    measure: Measure,
) -> Result<BTreeMap<TableId, Distribution>, Stopping> {
    let look = move |there: &Rc<Shard>| measured(there.engine(), measure);
    let mut found: BTreeMap<TableId, Distribution> = BTreeMap::new();
    for part in ask_all(shard.others(), look).await? {
        for (id, more) in part {
            match found.get_mut(&id) {
                Some(all) => all.merge(&more),
                None => drop(found.insert(id, more)),
            }
        }
    }
    Ok(found)
}

/// One shard's.
fn measured(engine: &Engine, measure: Measure) -> Vec<(TableId, Distribution)> {
    let stores = engine.stores();
    let of = stores.iter().filter_map(|(id, store)| Some((*id, store.stats.measure(measure)?)));
    of.map(|(id, histogram)| (id, histogram.distribution())).collect()
}
