//! Verbs of caches.

use super::MEBIBYTE;
use crate::model::{Refusal, Shown};
use crate::nodetool::CachesVerb;
use crate::operator::{Answer, CacheName, CachesOperator};

pub(super) async fn ask(operator: &impl CachesOperator, verb: CachesVerb) -> Answer<Option<Shown>> {
    match verb {
        CachesVerb::Invalidate(cache) => operator.invalidate_cache(cache).await?,
        CachesVerb::SetCapacity { keys, rows, counters } => {
            let all =
                [(CacheName::Keys, keys), (CacheName::Rows, rows), (CacheName::Counters, counters)];
            for (cache, mebibytes) in all {
                let Ok(mebibytes) = u64::try_from(mebibytes) else {
                    let why = "capacity should not be negative.";
                    return Err(Refusal::Failed(why.to_owned()));
                };
                operator.set_cache_capacity(cache, mebibytes.saturating_mul(MEBIBYTE)).await?;
            }
        }
        CachesVerb::SetKeysToSave { keys, rows, counters } => {
            for (cache, name, most) in [
                (CacheName::Keys, "Key", keys),
                (CacheName::Rows, "Row", rows),
                (CacheName::Counters, "Counter", counters),
            ] {
                let Ok(most) = u32::try_from(most) else {
                    let why = format!("{name}CacheKeysToSave must be non-negative.");
                    return Err(Refusal::Failed(why));
                };
                operator.set_cache_keys_to_save(cache, most).await?;
            }
        }
    }
    Ok(None)
}
