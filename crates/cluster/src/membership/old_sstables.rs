//! Do tables of the ring have to stay WITH COMPACT STORAGE? SSTables of before 3.0 could not be
//! read any more without it (`AlterTableStatement.validateCanDropCompactStorage`).

use gossip::AppState;
use types::Address;

use super::Membership;

/// The last version of SSTables of before 3.0.
const LAST_OLD: &str = "big-ma";

impl Membership {
    /// Why COMPACT STORAGE cannot be dropped yet, if it cannot.
    pub(crate) fn keeps_compact_storage(&self) -> Option<String> {
        let gossiper = self.gossiper.borrow();
        let said = |address: &Address| {
            gossiper.peer(*address).and_then(|peer| peer.state.get(AppState::SSTABLE_VERSIONS))
        };
        let nodes = self.nodes.borrow();
        refusal(nodes.keys().map(|address| (address, said(address))))
    }
}

/// Of nodes and the versions of SSTables that each says it has.
fn refusal<'a>(nodes: impl Iterator<Item = (&'a Address, Option<&'a str>)>) -> Option<String> {
    let (mut silent, mut old) = (Vec::new(), Vec::new());
    for (node, versions) in nodes {
        let is_old = |version: &str| !version.is_empty() && version <= LAST_OLD;
        match versions.map(|versions| versions.split(',').any(is_old)) {
            None => silent.push(format!("/{node}")),
            Some(true) => old.push(format!("/{node}")),
            Some(false) => {}
        }
    }
    match (silent.is_empty(), old.is_empty()) {
        (false, _) => Some(format!(
            "Cannot guarantee that DROP COMPACT STORAGE is safe as some nodes in the cluster ([{}]) do not have \
             https://issues.apache.org/jira/browse/CASSANDRA-15897. Please upgrade those nodes and retry.",
            silent.join(", ")
        )),
        (true, false) => Some(format!(
            "Cannot DROP COMPACT STORAGE as some nodes in the cluster ([{}]) has some non-upgraded 2.x sstables. \
             Please run `upgradesstables` on those nodes before retrying",
            old.join(", ")
        )),
        (true, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_sstables_and_silence_keep_compact_storage() {
        let node = Address { ip: [127, 0, 0, 2].into(), port: 7000 };
        let of = |versions| refusal(std::iter::once((&node, versions)));
        for now in ["", "big-nb", "big-mb,big-md", "bti-da", "big-nb,bti-da"] {
            assert_eq!(of(Some(now)), None, "{now}");
        }
        for old in ["big-ma", "big-la", "big-nb,big-jb"] {
            assert!(of(Some(old)).is_some_and(|text| text.contains("upgradesstables")), "{old}");
        }
        assert!(of(None).is_some_and(|text| text.contains("CASSANDRA-15897")));
        assert_eq!(refusal(std::iter::empty()), None);
    }
}
