//! Compactions that the strategies of tables still have to do.

use cluster::Shard;
use env::Class;
use schema::TableId;
use storage::shards::Stopping;

/// About how many each table has, without those that have none. They are known on the first shard.
///
/// # Errors
/// If that shard ends first.
pub(crate) async fn pending_compactions(shard: &Shard) -> Result<Vec<(TableId, u64)>, Stopping> {
    let look = |there: std::rc::Rc<Shard>| async move {
        let engine = there.engine();
        let Some(node) = engine.node() else { return Vec::new() };
        let mut pending = Vec::new();
        for (id, _) in engine.stores() {
            // a table that was dropped in between has none
            let tasks = node.compactions().pending(id).await.unwrap_or_default();
            if tasks > 0 {
                pending.push((id, tasks as u64));
            }
            engine.env().maybe_yield().await;
        }
        pending
    };
    shard.others().call_async(0, Class::Admin, look).await
}
