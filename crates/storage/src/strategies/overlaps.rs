//! Sets of SSTables that meet at some key (`utils.Overlaps`).

use std::collections::BTreeSet;

use super::choice::Candidate;

/// Which sets of an overlap join a bucket (`overlap_inclusion_method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusion {
    /// Only those that are over the threshold themselves.
    None,
    /// And those that share a table with one.
    Single,
    /// And those that share a table with these, and so on.
    Transitive,
}

/// Positions of tables in the list that sets were made of.
pub(crate) type Set = BTreeSet<usize>;

/// The sets of tables that have a key's range in common, in the order of keys: no set lies within
/// another one, and no table is in two sets without being in those between them.
pub(crate) fn overlap_sets(tables: &[&Candidate]) -> Vec<Set> {
    let mut order: Vec<usize> = (0..tables.len()).collect();
    order.sort_by(|a, b| tables.get(*a).map(|t| &t.first).cmp(&tables.get(*b).map(|t| &t.first)));
    let mut sets = Vec::new();
    let mut active = Set::new();
    for at in order {
        let table = tables.get(at).expect("each place in the order has an SSTable");
        let is_over = |other: &usize| tables.get(*other).is_some_and(|o| table.first > o.last);
        if active.iter().any(is_over) {
            sets.push(active.clone());
            active.retain(|other| !is_over(other));
        }
        active.insert(at);
    }
    if !active.is_empty() {
        sets.push(active);
    }
    sets
}

/// Ranges of sets that are to be treated as one, each with a set of at least `threshold` tables.
pub(crate) fn groups(
    sets: &[Set],
    threshold: usize,
    inclusion: Inclusion,
) -> Vec<std::ops::Range<usize>> {
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(set) = sets.get(at) {
        let free = groups.last().map_or(0, |group| group.end);
        let (mut start, mut end) = (at, at + 1);
        at += 1;
        if set.len() < threshold {
            continue;
        }
        if inclusion != Inclusion::None {
            let mut all = set.clone();
            let mut joins = |next: &Set| {
                let target = if inclusion == Inclusion::Transitive { &all } else { set };
                let meets = !next.is_disjoint(target);
                if meets {
                    all.extend(next);
                }
                meets
            };
            while start > free && sets.get(start - 1).is_some_and(&mut joins) {
                start -= 1;
            }
            while sets.get(end).is_some_and(&mut joins) {
                end += 1;
            }
            at = end;
        }
        groups.push(start..end);
    }
    groups
}

/// Takes tables from the end of `order` as long as no set has more than `limit` of them.
pub(crate) fn pull_last(order: &[usize], sets: &[Set], limit: usize) -> Vec<usize> {
    let mut selected = vec![0usize; sets.len()];
    let mut pulled = Vec::new();
    for table in order.iter().rev() {
        for (set, count) in sets.iter().zip(&mut selected) {
            *count += usize::from(set.contains(table));
        }
        if selected.iter().any(|count| *count > limit) {
            break;
        }
        pulled.push(*table);
    }
    pulled
}
