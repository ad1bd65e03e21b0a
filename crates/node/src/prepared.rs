//! Statements that were prepared before the node last ended.

use cluster::Shard;
use metrics::Level;

use crate::journal::Journal;

/// Prepares them. What cannot be read is prepared again by those who need it.
pub(crate) async fn load_statements(shard: &Shard, journal: &Journal) {
    let env = shard.engine().env();
    let began = env.now();
    match shard.statements().load().await {
        Ok(0) => {}
        Ok(count) => {
            let took = (env.now() - began).as_millis();
            let text = format!("Preloaded {count} prepared statements in {took} ms");
            journal.say(Level::Info, text);
        }
        Err(error) => {
            let text = format!(
                "cannot read system.prepared_statements, drivers prepare their statements again: \
                 {}",
                error.message
            );
            journal.say(Level::Warn, text);
        }
    }
}
