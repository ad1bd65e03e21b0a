//! What keyspaces withstand, in one or several rings. Pure.

use std::sync::Arc;

use ring::{Chance, Failures, Loss, Ring, Unit};
use schema::{Keyspace, Strategy};

/// What is asked: up to how many fail at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Failing {
    /// Nodes.
    pub nodes: usize,
    /// Racks.
    pub racks: usize,
}

/// Chances of keyspaces of one replication.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyspaceOdds {
    /// Their names.
    pub keyspaces: Vec<String>,
    /// The rings that are compared.
    pub rings: Vec<String>,
    /// The chances.
    pub rows: Vec<OddsRow>,
}

/// The chance of one loss, in each ring.
#[derive(Clone, Debug, PartialEq)]
pub struct OddsRow {
    /// What fails.
    pub unit: Unit,
    /// How many of them, at the same time.
    pub failed: usize,
    /// What is missing then.
    pub missing: Missing,
    /// By ring; none where there are not so many.
    pub chances: Vec<Option<Chance>>,
}

/// What is missing of some range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A quorum.
    Quorum,
    /// A quorum in a data centre.
    LocalQuorum(String),
    /// All replicas.
    Everything,
}

/// Keyspaces by their replication, those that are the same together, users' and the system's
/// apart; none that are not on a ring.
pub(super) fn groups(keyspaces: &[Arc<Keyspace>]) -> Vec<(Strategy, Vec<String>)> {
    let mut groups: Vec<(Strategy, bool, Vec<String>)> = Vec::new();
    for keyspace in keyspaces {
        let (strategy, name) = (&keyspace.replication.strategy, keyspace.name.clone());
        if !matches!(strategy, Strategy::Simple(_) | Strategy::NetworkTopology(_)) {
            continue;
        }
        let is_system = cql::is_system_keyspace(&name);
        match groups.iter_mut().find(|group| group.0 == *strategy && group.1 == is_system) {
            Some((.., names)) => names.push(name),
            None => groups.push((strategy.clone(), is_system, vec![name])),
        }
    }
    groups.into_iter().map(|(strategy, _, names)| (strategy, names)).collect()
}

/// Chances under one strategy in one ring.
pub(super) fn rows(ring: &Ring, strategy: &Strategy, failing: Failing) -> Vec<OddsRow> {
    let Some(placement) = ring.placement(strategy) else { return Vec::new() };
    let failures = Failures::new(ring, placement);
    let mut losses = vec![(Loss::Quorum, Missing::Quorum)];
    // of one data centre both are the same
    if failures.centers().count() > 1 {
        losses.extend(failures.centers().map(|center| {
            let name = ring.center_name(center).to_string();
            (Loss::LocalQuorum(center), Missing::LocalQuorum(name))
        }));
    }
    losses.push((Loss::Everything, Missing::Everything));
    let mut rows = Vec::new();
    for (unit, most) in [(Unit::Nodes, failing.nodes), (Unit::Racks, failing.racks)] {
        for failed in 1..=most {
            for (loss, missing) in &losses {
                let chance = failures.chance(*loss, unit, failed);
                let missing = missing.clone();
                rows.push(OddsRow { unit, failed, missing, chances: vec![chance] });
            }
        }
    }
    rows
}

/// The same keyspaces in several rings, side by side.
pub(super) fn beside(all: Vec<Vec<OddsRow>>) -> Vec<OddsRow> {
    let count = all.len();
    let mut table: Vec<OddsRow> = Vec::new();
    for (place, rows) in all.into_iter().enumerate() {
        for row in rows {
            let is_same = |known: &&mut OddsRow| {
                known.unit == row.unit && known.failed == row.failed && known.missing == row.missing
            };
            let chance = row.chances.first().copied().flatten();
            match table.iter_mut().find(is_same) {
                Some(known) => known.chances[place] = chance,
                None => {
                    let mut chances = vec![None; count];
                    chances[place] = chance;
                    table.push(OddsRow { chances, ..row });
                }
            }
        }
    }
    table.retain(|row| row.chances.iter().any(Option::is_some));
    table
}
