//! What must hold of the merge of any answers.

use std::collections::BTreeMap;

use internode::payload::read::{
    ColumnFilter, Columns, Grouping, Paging, Position, ReadCommand, RowChoice, Subselection, Target,
};
use proptest::prelude::*;
use rows::codec::ColumnSet;
use rows::{CellRef, Clustering, PartitionUpdate, RowRef, Unfiltered};
use schema::Table;
use storage::PartitionKey;

use super::replica::{Limited, answer, encoded, limited, merged, up_to};
use super::setting::{Case, NO_LIMIT, Setting, case};
use crate::reconcile::{End, Given, Partition, Reconciled, decode, ends, reconcile};
use crate::replica_read::slices::{after, slices};

/// What of an update is told; two that are equal in it are equal.
fn told(update: &PartitionUpdate) -> String {
    let rows: Vec<RowRef<'_>> = update.rows.iter().collect();
    let (statics, ranges) = (update.static_row(), &update.ranges);
    format!("{:?} {:?} {statics:?} {rows:?} {ranges:?}", update.key, update.deletion)
}

fn settled(setting: &Setting, partitions: &[Partition]) -> Vec<Partition> {
    partitions.iter().map(|one| super::replica::settled(&setting.table, one)).collect()
}

/// Partitions up to where something is known.
fn up_to_end(setting: &Setting, all: Vec<Partition>, end: Option<&End>) -> Vec<Partition> {
    let cut = |partition: Partition| match end.filter(|end| end.key <= partition.key) {
        Some(end) if end.key < partition.key => None,
        Some(End { row: Some(row), .. }) => {
            Some(up_to(&setting.table, &partition, row, setting.reversed()))
        }
        _ => Some(partition),
    };
    all.into_iter().filter_map(cut).filter(|partition| !partition.is_empty()).collect()
}

/// The places where a replica was cut, and those where the limits of the merge itself lie: nothing
/// else ends it.
fn may_end(setting: &Setting, given: &[Given], all: &Limited) -> Vec<End> {
    let mut ends: Vec<End> = given.iter().filter_map(|given| given.end.clone()).collect();
    for given in given {
        let cut = given.cut.iter().filter_map(|at| given.partitions.get(*at));
        ends.extend(cut.map(|cut| End { key: cut.key.clone(), row: cut.last_row() }));
    }
    for (partition, last) in all {
        ends.push(End { key: partition.key.clone(), row: None });
        ends.push(End { key: partition.key.clone(), row: last.clone() });
    }
    if matches!(setting.command.target, Target::Partition { .. }) {
        ends.retain(|end| end.row.is_some());
    }
    ends
}

fn check_merge(setting: &Setting) -> Result<(), TestCaseError> {
    let given = setting.given();
    let Reconciled { partitions, end, repairs } =
        reconcile(&setting.table, &setting.command, &given);
    let (limited, is_full) = limited(&setting.table, &setting.command, setting.all());
    if let Some(end) = &end {
        prop_assert!(may_end(setting, &given, &limited).contains(end), "{:?}", end);
    }
    let is_cut = given.iter().any(|given| given.end.is_some() || !given.cut.is_empty());
    prop_assert!(end.is_none() || is_cut || is_full);
    let whole: Vec<Partition> = limited.iter().map(|(partition, _)| partition.clone()).collect();
    let expected = settled(setting, &up_to_end(setting, whole, end.as_ref()));
    prop_assert_eq!(settled(setting, &partitions), expected);

    // each replica with what it is told is level, and is told nothing of what lies beyond
    for (replica, repairs) in setting.replicas.iter().zip(&repairs) {
        let keys = repairs.iter().map(|repair| repair.token);
        prop_assert!(keys.is_sorted());
        for partition in &partitions {
            let key = &partition.key;
            let of_end = end.as_ref().filter(|end| end.key == *key).map(|end| end.row.clone());
            let of_limits = limited.iter().find(|(partition, _)| partition.key == *key);
            let last = of_end.flatten().or(of_limits.and_then(|(_, last)| last.clone()));
            check_repair(setting, key, last.as_ref(), replica, repairs)?;
        }
        for repair in repairs {
            prop_assert!(partitions.iter().any(|partition| partition.key.bytes == repair.key));
            prop_assert!(!repair.is_empty());
        }
    }
    Ok(())
}

fn of_key<'u>(updates: &'u [PartitionUpdate], key: &PartitionKey) -> Vec<&'u PartitionUpdate> {
    updates.iter().filter(|update| update.key == key.bytes).collect()
}

fn check_repair(
    setting: &Setting,
    key: &PartitionKey,
    last: Option<&Clustering>,
    replica: &[PartitionUpdate],
    repairs: &[PartitionUpdate],
) -> Result<(), TestCaseError> {
    let (has, repair) = (of_key(replica, key), of_key(repairs, key));
    // each twice, so that what only a merge drops is dropped everywhere
    let merged = |updates: &[&PartitionUpdate]| {
        let all = merged(&setting.table, &setting.command, 2, &updates.repeat(2));
        let all = all.filter(|_| !updates.is_empty());
        match (all, last) {
            (Some(all), Some(last)) => Some(up_to(&setting.table, &all, last, setting.reversed())),
            (all, _) => all,
        }
    };
    let of_all = setting.replicas.iter().flat_map(|replica| of_key(replica, key));
    let expected = merged(&of_all.collect::<Vec<_>>());
    prop_assert_eq!(merged(&[&has[..], &repair[..]].concat()), expected.clone());
    if merged(&has) == expected {
        prop_assert!(repair.is_empty(), "{:?}", repair);
    }
    let whole = super::replica::merged(&setting.table, &setting.command, 2, &repair.repeat(2));
    prop_assert_eq!(merged(&repair), whole, "beyond the end");
    Ok(())
}

/// The read of what follows.
fn next(setting: &Setting, end: &End, remaining: i32) -> ReadCommand {
    let mut next = setting.command.clone();
    let layout = setting.layout();
    if end.row.is_some() {
        let last_key = end.key.bytes.clone().into();
        next.limits.paging = Some(Paging { last_key, remaining });
    }
    match &mut next.target {
        Target::Partition { rows, .. } => {
            let row = end.row.clone().expect("a partition ends for good");
            let left = after(layout, &slices(layout, rows).expect("in order"), &(row, false));
            rows.choice = RowChoice::Slices(left.ranges().to_vec());
        }
        Target::Range { keys, after, .. } => {
            keys.from = Position::Key(end.key.bytes.clone().into());
            keys.from_inclusive = end.row.is_some();
            *after = end.row.clone().map(|row| (row, false));
        }
    }
    next
}

/// What clients can tell of partitions: heads and rows.
type Seen = (BTreeMap<PartitionKey, (String, Option<Vec<u8>>)>, Vec<(PartitionKey, Vec<u8>)>);

fn see(partitions: &[Partition], seen: &mut Seen) -> Result<(), TestCaseError> {
    for partition in partitions {
        let head = (format!("{:?}", partition.deletion), partition.statics.clone());
        let before = seen.0.insert(partition.key.clone(), head.clone());
        prop_assert!(before.is_none_or(|before| before == head));
        for one in partition.unfiltereds() {
            if let Unfiltered::Row(row) = one {
                seen.1.push((partition.key.clone(), row.as_packed().to_vec()));
            }
        }
    }
    Ok(())
}

fn live_rows(partition: &Partition) -> i32 {
    let is_live = |one: &Unfiltered<'_>| matches!(one, Unfiltered::Row(row) if row.has_live_data(super::facts::NOW.into(), false));
    partition.unfiltereds().filter(is_live).count() as i32
}

fn check_walk(mut setting: Setting, groups: Option<(i32, i32)>) -> Result<(), TestCaseError> {
    if groups.is_some() {
        // of rows and of partitions there is none then
        setting.command.limits.per_partition = NO_LIMIT;
    }
    let mut first = setting.command.clone();
    if let Some((most, columns)) = groups {
        let grouping = Grouping { clustering_columns: Some(columns), last: None };
        first.limits.groups = Some((most, grouping));
    }
    setting.command.limits.rows = NO_LIMIT;
    let (whole, _) = limited(&setting.table, &setting.command, setting.all());
    let (mut expected, mut seen) = (Seen::default(), Seen::default());
    let whole: Vec<Partition> = whole.into_iter().map(|(partition, _)| partition).collect();
    let whole: Vec<Partition> = whole.into_iter().filter(|one| !one.is_empty()).collect();
    see(&settled(&setting, &whole), &mut expected)?;
    setting.command = first.clone();
    let mut repairs = vec![Vec::new(); setting.replicas.len()];
    let mut last: Option<End> = None;
    let mut live = BTreeMap::new();
    loop {
        let given = setting.given();
        let page = reconcile(&setting.table, &setting.command, &given);
        see(&settled(&setting, &page.partitions), &mut seen)?;
        for (all, repairs) in repairs.iter_mut().zip(page.repairs) {
            all.extend(repairs);
        }
        for partition in &page.partitions {
            *live.entry(partition.key.clone()).or_insert(0) += live_rows(partition);
        }
        let Some(end) = page.end else { break };
        if let Some(last) = &last {
            let order = last.compare(&end, setting.layout(), setting.reversed());
            prop_assert!(order.is_lt(), "{:?} and then {:?}", last, end);
        }
        let has = live.get(&end.key).copied().unwrap_or(0);
        setting.command = first.clone();
        setting.command = next(&setting, &end, first.limits.per_partition.saturating_sub(has));
        last = Some(end);
    }
    prop_assert_eq!(&seen, &expected);
    if first.limits.per_partition == NO_LIMIT {
        setting.command = first;
        for (replica, repairs) in setting.replicas.iter().zip(&repairs) {
            for partition in &whole {
                check_level(&setting, &partition.key, replica, repairs)?;
            }
        }
    }
    Ok(())
}

/// Filters of which not all that is fetched was asked for, and which cells were.
fn filter(table: &Table, choice: u8) -> (ColumnFilter, fn(bool, &CellRef<'_>) -> bool) {
    let columns = |statics: &[u16], regulars: &[u16]| Columns {
        statics: ColumnSet::of(&table.layout, true, statics.iter().copied()),
        regulars: ColumnSet::of(&table.layout, false, regulars.iter().copied()),
    };
    let part = || Subselection::Element { column: "m".into(), path: (*b"b").into() };
    match choice {
        0 => {
            let filter = ColumnFilter::some(Columns::all(table), true, columns(&[1], &[1, 2]));
            (filter, |is_static, cell| match is_static {
                true => cell.column == 1,
                false => matches!(cell.column, 1 | 2),
            })
        }
        1 => {
            let queried = columns(&[], &[0, 2]);
            let mut filter = ColumnFilter::some(Columns::all(table), false, queried);
            filter.subselections = vec![part()];
            (filter, |is_static, cell| {
                !is_static && (cell.column == 0 || (cell.column == 2 && cell.path == Some(b"b")))
            })
        }
        _ => {
            let mut filter = ColumnFilter::only(columns(&[0], &[2, 3]));
            filter.subselections = vec![part()];
            (filter, |is_static, cell| match is_static {
                true => cell.column == 0,
                false => cell.column == 3 || (cell.column == 2 && cell.path == Some(b"b")),
            })
        }
    }
}

/// Nothing is written that came without its value, and all that came with one is.
fn check_filter(mut setting: Setting, choice: u8) -> Result<(), TestCaseError> {
    let (columns, is_queried) = filter(&setting.table, choice);
    setting.command.columns = columns;
    let given = setting.given();
    let repairs = reconcile(&setting.table, &setting.command, &given).repairs;
    for repair in repairs.iter().flatten() {
        for row in repair.static_row().into_iter().chain(repair.rows.iter()) {
            let mut cells = row.cells().filter(|cell| !cell.is_complex_deletion());
            prop_assert!(cells.all(|cell| is_queried(row.is_static(), &cell)), "{:?}", row);
        }
    }
    let queried = setting.command.columns.queried().clone();
    let parts = setting.command.columns.subselections.clone();
    setting.command.columns = ColumnFilter::only(queried);
    setting.command.columns.subselections = parts;
    for (replica, repairs) in setting.replicas.iter().zip(&repairs) {
        for partition in setting.all() {
            check_level(&setting, &partition.key, replica, repairs)?;
        }
    }
    Ok(())
}

/// A replica with what it was told has what all have.
fn check_level(
    setting: &Setting,
    key: &PartitionKey,
    replica: &[PartitionUpdate],
    repairs: &[PartitionUpdate],
) -> Result<(), TestCaseError> {
    let level = [of_key(replica, key), of_key(repairs, key)].concat().repeat(2);
    let all = setting.replicas.iter().flat_map(|replica| of_key(replica, key));
    let all = all.collect::<Vec<_>>().repeat(2);
    let merged = |updates: &[_]| merged(&setting.table, &setting.command, 2, updates);
    prop_assert_eq!(merged(&level), merged(&all));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn what_comes_out_is_the_merge_as_far_as_all_are_known(case in case()) {
        check_merge(&case.set())?;
    }

    #[test]
    fn a_walk_gives_every_row_once_and_leaves_all_level(case in case()) {
        check_walk(case.set(), case.groups)?;
    }

    #[test]
    fn what_came_without_its_value_is_not_written(case in case(), choice in 0u8..3) {
        let limits = (NO_LIMIT, NO_LIMIT);
        check_filter(Case { limits, is_counter: false, ..case }.set(), choice)?;
    }

    #[test]
    fn the_order_of_the_sources_does_not_matter(case in case(), turn in 0usize..4) {
        let setting = case.set();
        let mut given = setting.given();
        let mut one = reconcile(&setting.table, &setting.command, &given);
        let turn = turn % given.len();
        given.rotate_left(turn);
        one.repairs.rotate_left(turn);
        given.reverse();
        one.repairs.reverse();
        let other = reconcile(&setting.table, &setting.command, &given);
        prop_assert_eq!(one.partitions, other.partitions);
        prop_assert_eq!(one.end, other.end);
        let all = |repairs: &[Vec<PartitionUpdate>]| -> Vec<Vec<String>> {
            repairs.iter().map(|repairs| repairs.iter().map(told).collect()).collect()
        };
        prop_assert_eq!(all(&one.repairs), all(&other.repairs));
    }

    #[test]
    fn equal_sources_lack_nothing(case in case(), sources in 1usize..4) {
        let setting = case.set();
        let given = setting.given().swap_remove(0);
        let given = vec![given; sources];
        let out = reconcile(&setting.table, &setting.command, &given);
        for repairs in out.repairs {
            prop_assert!(repairs.is_empty(), "{:?}", repairs.iter().map(told).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_encoded_is_decoded(case in case()) {
        let limits = (NO_LIMIT, NO_LIMIT);
        let setting = Case { limits, ..case }.set();
        let all = setting.all();
        let data = encoded(&setting.table, &setting.command, &all);
        let given = decode(&setting.table, &setting.command, &data).expect("what was encoded");
        prop_assert_eq!(given.partitions, all);
        prop_assert_eq!(given.end, None);
        prop_assert_eq!(given.cut, Vec::<usize>::new());
    }

    /// Whatever bytes come, they are refused, or something is made of them.
    #[test]
    fn no_bytes_do_harm(
        case in case(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..4),
    ) {
        let setting = case.set();
        let mut data = answer(&setting.table, &setting.command, &setting.replicas[0]);
        for (at, byte, what) in changes {
            let at = at.index(data.len().max(1)).min(data.len().saturating_sub(1));
            match what {
                0 => data[at..].iter_mut().take(1).for_each(|old| *old = byte),
                1 => data.insert(at, byte),
                _ => drop(data.drain(at..(at + usize::from(byte % 5)).min(data.len()))),
            }
            if data.is_empty() {
                data.push(byte);
            }
        }
        if let Ok(hostile) = decode(&setting.table, &setting.command, &data) {
            let mut given = setting.given();
            given.push(hostile);
            let out = reconcile(&setting.table, &setting.command, &given);
            for partition in &out.partitions {
                let places = partition.unfiltereds().collect::<Vec<_>>();
                let is_before = |pair: &[Unfiltered<'_>]| {
                    let (a, b) = (pair[0].position(), pair[1].position());
                    ends::compare(setting.layout(), setting.reversed(), a, b).is_lt()
                };
                prop_assert!(places.windows(2).all(is_before));
            }
        }
    }
}
