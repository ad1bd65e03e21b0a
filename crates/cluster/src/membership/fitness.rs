//! Tells the log which keyspaces want other nodes or racks than the ring has.

use std::collections::BTreeMap;

use cql::permission::is_system;
use metrics::Level;

use super::Membership;

/// What was found at the last look, and whether it was told.
#[derive(Debug, Default)]
pub(super) struct Findings(BTreeMap<String, bool>);

impl Findings {
    /// What is to be told now: what was so at the last look, too, once. Nodes come one after the
    /// other.
    fn look(&mut self, found: impl Iterator<Item = String>) -> Vec<String> {
        let before = std::mem::take(&mut self.0);
        let is_told = |finding: &String| before.contains_key(finding);
        self.0 = found.map(|finding| (finding.clone(), is_told(&finding))).collect();
        let is_news = |finding: &&String| before.get(*finding) == Some(&false);
        self.0.keys().filter(is_news).cloned().collect()
    }
}

impl Membership {
    /// Looks at all keyspaces of users.
    pub(super) fn tell_fitness(&self) {
        let Some(ring) = self.ring.borrow().clone() else { return };
        let schema = self.shard.schema();
        let keyspaces = schema.keyspaces().values().filter(|keyspace| !is_system(&keyspace.name));
        let found = keyspaces.flat_map(|keyspace| {
            ring::fitness(&ring, &keyspace.name, &keyspace.replication.strategy)
        });
        for finding in self.unfit.borrow_mut().look(found) {
            self.peers.note(Level::Warn, finding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_so_is_told_once_and_again_once_it_was_mended() {
        let mut findings = Findings::default();
        let mut look = |texts: &[&str]| findings.look(texts.iter().map(|text| text.to_string()));
        assert!(look(&["a", "b"]).is_empty());
        assert_eq!(look(&["a", "c"]), ["a"]);
        assert_eq!(look(&["a", "c"]), ["c"]);
        assert!(look(&["a"]).is_empty());
        assert!(look(&["a", "c"]).is_empty());
        assert_eq!(look(&["a", "c"]), ["c"]);
    }
}
