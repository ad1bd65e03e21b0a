//! Asking every shard the same.

use std::rc::Rc;

use storage::shards::{Remote, Stopping};

/// What a component finds on each shard, in their order.
///
/// # Errors
/// If a shard ends first.
pub(crate) async fn ask_all<P: 'static, T: Send + 'static>(
    others: &Remote<P>,
    look: impl Fn(&Rc<P>) -> T + Clone + Send + 'static,
) -> Result<Vec<T>, Stopping> {
    let mut all = Vec::with_capacity(others.count());
    for shard in 0..others.count() {
        all.push(others.call(shard, look.clone()).await?);
    }
    Ok(all)
}
