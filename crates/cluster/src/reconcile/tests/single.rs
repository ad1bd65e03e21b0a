//! Cases one by one.

use std::sync::Arc;

use internode::payload::read::{
    Expression, Grouping, KeyRange, Limits, Operator, Position, RowChoice, RowsOf, Target,
};
use rows::{
    Bound, BoundKind, CellRef, Clustering, Deletion, Liveness, PartitionUpdate, RangeTombstone,
    RowBuilder, Unfiltered, UpdateBuilder, compare,
};
use schema::Table;
use storage::PartitionKey;

use super::facts::{clustering_of, key_of, table};
use super::replica::{all_of, answer, command, encoded, everything};
use crate::reconcile::{End, Given, Reconciled, decode, reconcile};

const NO_LIMIT: i32 = i32::MAX;

/// A partition with rows of which each has a value at a time.
fn rows(table: &Table, key: u8, rows: &[(u8, i64)]) -> UpdateBuilder {
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &key_of(key));
    let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
    for (c, timestamp) in rows {
        row.start_row(clustering_of(&[*c, 0]).as_ref());
        row.liveness(Liveness::new(*timestamp));
        row.cell(CellRef::live(1, None, *timestamp, &[0, 0, 0, *c]));
        update.add(row.finish_row(&table.layout), &mut scratch);
    }
    update
}

fn finish(update: UpdateBuilder) -> PartitionUpdate {
    update.finish(&mut RowBuilder::new())
}

fn row(c: u8) -> Option<Clustering> {
    Some(clustering_of(&[c, 0]))
}

fn of(key: u8, limits: Limits) -> (Target, Limits) {
    (Target::Partition { key: key_of(key).into(), rows: RowsOf::all() }, limits)
}

fn ask(
    table: &Table,
    (target, limits): (Target, Limits),
    replicas: &[Vec<PartitionUpdate>],
) -> (Vec<Given>, Reconciled) {
    let command = command(table, target, limits);
    let given = replicas.iter().map(|replica| {
        decode(table, &command, &answer(table, &command, replica)).expect("an answer")
    });
    let given: Vec<_> = given.collect();
    let out = reconcile(table, &command, &given);
    (given, out)
}

/// Two rows of one replica are deleted by the other: there may be more of the first, and it has to
/// be asked.
#[test]
fn a_short_read_ends_where_the_first_replica_stopped() {
    let table = table(false);
    let full = finish(rows(&table, 1, &[(0, 5), (1, 5), (2, 5), (3, 5)]));
    let mut deleted = rows(&table, 1, &[(7, 5)]);
    let deletion = Deletion::new(6, 1000);
    deleted.delete_range(RangeTombstone::of_prefix(clustering_of(&[0]).as_ref(), deletion));
    deleted.delete_range(RangeTombstone::of_prefix(clustering_of(&[1]).as_ref(), deletion));
    let replicas = [vec![full], vec![finish(deleted)]];
    let (given, out) = ask(&table, of(1, Limits::of_rows(2, NO_LIMIT)), &replicas);
    let key = PartitionKey::new(key_of(1));
    assert_eq!(given[0].end, Some(End { key: key.clone(), row: row(1) }));
    assert_eq!(given[1].end, None);
    assert_eq!(out.end, Some(End { key: key.clone(), row: row(1) }));
    assert_eq!(out.repairs[0].len(), 1);
    assert_eq!(out.repairs[0][0].ranges.len(), 2);
    assert!(out.repairs[1].is_empty(), "row 7 is not known to the end");
    // a limit of the partition: the same, as long as not enough of it lives
    let (_, out) = ask(&table, of(1, Limits::of_rows(NO_LIMIT, 2)), &replicas);
    assert_eq!(out.end, Some(End { key, row: row(1) }));
}

/// What begins just behind the last row that is known is not given, be it known of some; what ends
/// there is closed once.
#[test]
fn edges_just_behind_the_end_are_left_out() {
    let table = table(false);
    let at = |kind, c| Bound::new(kind, clustering_of(&[c, 0]));
    let ranges = [
        (at(BoundKind::ExclStart, 1), at(BoundKind::InclEnd, 7)),
        (at(BoundKind::InclStart, 0), at(BoundKind::InclEnd, 1)),
    ];
    for (range, markers) in ranges.into_iter().zip([2, 3]) {
        let stops = vec![finish(rows(&table, 1, &[(0, 5), (1, 5), (2, 5)]))];
        let mut update = rows(&table, 1, &[]);
        let (start, end) = range;
        update.delete_range(RangeTombstone { start, end, deletion: Deletion::new(3, 1000) });
        let mut dead = rows(&table, 1, &[]);
        let row = clustering_of(&[0, 0]);
        let deletion = Deletion::new(9, 1000);
        dead.delete_range(RangeTombstone::of_prefix(row.as_ref(), deletion));
        let replicas = [stops, vec![finish(update)], vec![finish(dead)]];
        let (_, out) = ask(&table, of(1, Limits::of_rows(2, NO_LIMIT)), &replicas);
        let partition = &out.partitions[0];
        let found = partition.unfiltereds().filter(|one| matches!(one, Unfiltered::Marker(_)));
        // with the two of the range that deletes a row
        assert_eq!(found.count(), markers, "{:?}", partition.unfiltereds().collect::<Vec<_>>());
        let places: Vec<_> = partition.unfiltereds().map(|one| one.position()).collect();
        assert!(places.is_sorted_by(|a, b| compare(&table.layout, *a, *b).is_lt()));
    }
}

/// As many rows as are wanted of a partition: what follows in it does not matter.
#[test]
fn a_partition_that_is_full_is_done() {
    let table = table(false);
    let one = |timestamp| {
        (1..3).map(|key| finish(rows(&table, key, &[(0, timestamp), (1, 5), (2, 5)]))).collect()
    };
    let replicas = [one(5), one(6)];
    let target = Target::Range { keys: everything(), rows: RowsOf::all(), after: None };
    let (given, out) = ask(&table, (target, Limits::of_rows(NO_LIMIT, 2)), &replicas);
    assert!(given.iter().all(|given| given.end.is_none() && given.cut == [0, 1]));
    assert_eq!(out.end, None);
    let rows: Vec<_> = out.partitions.iter().map(|partition| partition.ends.len()).collect();
    assert_eq!(rows, [2, 2]);
    assert_eq!((out.repairs[0].len(), out.repairs[1].len()), (2, 0));
}

/// A row that a replica gave, and that another has other values of, does not count if it does not
/// pass any more.
#[test]
fn rows_that_do_not_pass_do_not_count() {
    let table = table(false);
    let replica = |values: &[(u8, u8, i64)]| {
        let mut update = rows(&table, 1, &[]);
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        for (c, value, timestamp) in values {
            row.start_row(clustering_of(&[*c, 0]).as_ref());
            row.cell(CellRef::live(1, None, *timestamp, &[0, 0, 0, *value]));
            update.add(row.finish_row(&table.layout), &mut scratch);
        }
        vec![finish(update)]
    };
    let replicas = [replica(&[(0, 9, 5), (1, 9, 5), (2, 9, 5)]), replica(&[(0, 8, 6)])];
    let (target, limits) = of(1, Limits::of_rows(NO_LIMIT, 2));
    let mut command = command(&table, target, limits);
    let (column, value) = ("v".into(), [0, 0, 0, 9].into());
    command.filter = vec![Expression::Simple { column, operator: Operator::Eq, value }];
    let given = replicas.map(|replica| {
        decode(&table, &command, &answer(&table, &command, &replica)).expect("an answer")
    });
    let out = reconcile(&table, &command, &given);
    assert_eq!(out.end, Some(End { key: PartitionKey::new(key_of(1)), row: row(1) }));
    assert_eq!(out.partitions[0].ends.len(), 2);
}

/// All of one partition is known of a replica that stopped at its static row, and nothing of the
/// next.
#[test]
fn a_static_row_counts_where_nothing_else_does() {
    let table = table(false);
    let of_statics = |key| {
        let mut update = rows(&table, key, &[]);
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        row.start_static();
        row.cell(CellRef::live(0, None, 5, b"stat"));
        update.add(row.finish_row(&table.layout), &mut scratch);
        update
    };
    let mut keys: Vec<_> = (1..3).map(|key| (PartitionKey::new(key_of(key)), key)).collect();
    keys.sort();
    let [(first, one), (_, two)] = &keys[..] else { panic!("two keys") };
    let replicas =
        [vec![finish(of_statics(*one)), finish(of_statics(*two))], vec![finish(of_statics(*two))]];
    let target = Target::Range { keys: everything(), rows: RowsOf::all(), after: None };
    let (_, out) = ask(&table, (target, Limits::of_rows(1, NO_LIMIT)), &replicas);
    assert_eq!(out.end, Some(End { key: first.clone(), row: None }));
    assert_eq!(out.partitions.len(), 1);
}

/// The group of the page before turns out to be whole: the replica stops before any row, and none
/// is known.
#[test]
fn a_replica_that_stops_before_any_row_has_told_of_none() {
    let table = table(false);
    let replicas = [vec![finish(rows(&table, 1, &[(0, 5), (1, 5)]))]];
    let last = Some((key_of(1).into(), row(0)));
    let grouping = Grouping { clustering_columns: Some(1), last };
    let limits = Limits { groups: Some((1, grouping)), ..Limits::of_rows(NO_LIMIT, NO_LIMIT) };
    let from = Bound::new(BoundKind::ExclStart, clustering_of(&[0, 0]));
    let choice = RowChoice::Slices(vec![(from, Bound::top())]);
    let rest = RowsOf { reversed: false, choice };
    let target = Target::Partition { key: key_of(1).into(), rows: rest };
    let (_, out) = ask(&table, (target, limits), &replicas);
    assert_eq!(out.end, Some(End { key: PartitionKey::new(key_of(1)), row: row(0) }));

    // or with the next partition, of which nothing is known then, nor of those behind it
    let mut keys: Vec<_> = (1..3).map(|key| (PartitionKey::new(key_of(key)), key)).collect();
    keys.sort();
    let [(first, one), (_, two)] = &keys[..] else { panic!("two keys") };
    let last = Some((first.bytes.clone().into(), row(0)));
    let grouping = Grouping { clustering_columns: Some(1), last };
    let limits = Limits { groups: Some((1, grouping)), ..Limits::of_rows(NO_LIMIT, NO_LIMIT) };
    let from = Position::Key(first.bytes.clone().into());
    let keys = KeyRange { from, from_inclusive: true, ..everything() };
    let after = Some((clustering_of(&[0, 0]), false));
    let target = Target::Range { keys, rows: RowsOf::all(), after };
    let replica = [*one, *two].map(|key| finish(rows(&table, key, &[(0, 5)])));
    let (given, out) = ask(&table, (target, limits), &[replica.to_vec()]);
    let end = Some(End { key: first.clone(), row: None });
    assert_eq!((&given[0].end, &out.end), (&end, &end));
    assert!(out.partitions.is_empty());
}

/// A replica has counted enough, of which a row is dead; what there is of the partition is enough
/// nevertheless. Nothing is known of the partitions behind it.
#[test]
fn behind_a_full_partition_nothing_is_known_of_who_stopped_there() {
    let table = table(false);
    let mut keys: Vec<_> = (0..3).map(|key| (PartitionKey::new(key_of(key)), key)).collect();
    keys.sort();
    let keys: Vec<u8> = keys.into_iter().map(|(_, key)| key).collect();
    let of = |key: usize, given: &[(u8, i64)]| finish(rows(&table, keys[key], given));
    let live = vec![of(0, &[(0, 5)]), of(1, &[(0, 5), (1, 5)]), of(2, &[(0, 5)])];
    let mut deleted = rows(&table, keys[0], &[]);
    deleted.delete_partition(Deletion::new(9, 1000));
    let others = vec![finish(deleted), of(2, &[(3, 5)])];
    let target = Target::Range { keys: everything(), rows: RowsOf::all(), after: None };
    let (given, out) = ask(&table, (target, Limits::of_rows(3, 2)), &[live, others]);
    let second = PartitionKey::new(key_of(keys[1]));
    assert_eq!(given[0].end, Some(End { key: second.clone(), row: row(1) }));
    assert_eq!(out.end, Some(End { key: second, row: None }));
    assert_eq!(out.partitions.len(), 2);
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let table = table(false);
    let replica: Vec<_> = (0..4).map(|key| finish(rows(&table, key, &[(0, 5), (1, 5)]))).collect();
    let all = Limits::of_rows(NO_LIMIT, NO_LIMIT);
    let target = |reversed, keys| {
        let rows = RowsOf { reversed, ..RowsOf::all() };
        Target::Range { keys, rows, after: None }
    };
    let whole = command(&table, target(false, everything()), all.clone());
    let partitions = all_of(&table, &whole, &[&replica]);
    let data = encoded(&table, &whole, &partitions);
    assert!(decode(&table, &whole, &data).is_ok());
    // another direction
    let reversed = command(&table, target(true, everything()), all.clone());
    assert!(decode(&table, &reversed, &data).is_err());
    // another partition
    let one = command(&table, of(1, all.clone()).0, all.clone());
    assert!(decode(&table, &one, &data).is_err());
    // keys before the range, and after it
    let second = Position::Key(partitions[1].key.bytes.clone().into());
    let after = KeyRange { from: second.clone(), from_inclusive: true, ..everything() };
    let before = KeyRange { to: second, to_inclusive: true, ..everything() };
    for (keys, fits) in [(after, &partitions[1..]), (before, &partitions[..2])] {
        let part = command(&table, target(false, keys), all.clone());
        assert!(decode(&table, &part, &data).is_err());
        assert!(decode(&table, &part, &encoded(&table, &part, fits)).is_ok());
    }
    // partitions out of order, and one twice
    for order in [[0, 2, 1], [0, 1, 1]] {
        let data = encoded(&table, &whole, order.map(|at| &partitions[at]));
        assert!(decode(&table, &whole, &data).is_err());
    }
    // rows that come before the row after which the read goes on, but only in that partition
    let from = Position::Key(partitions[1].key.bytes.clone().into());
    let keys = KeyRange { from, from_inclusive: true, ..everything() };
    let after = Some((clustering_of(&[0, 0]), false));
    let rest = Target::Range { keys, rows: RowsOf::all(), after };
    let rest = command(&table, rest, all);
    assert!(decode(&table, &rest, &encoded(&table, &rest, &partitions[1..])).is_err());
    assert!(decode(&table, &rest, &encoded(&table, &rest, &partitions[2..])).is_ok());
}

/// What comes after the limits were reached is no more known than if it had not come.
#[test]
fn who_gives_more_than_is_wanted_is_believed_up_to_there() {
    let table = table(false);
    let replica: Vec<_> = (0..3).map(|key| finish(rows(&table, key, &[(0, 5), (1, 5)]))).collect();
    let target = || Target::Range { keys: everything(), rows: RowsOf::all(), after: None };
    let whole = command(&table, target(), Limits::of_rows(NO_LIMIT, NO_LIMIT));
    let partitions = all_of(&table, &whole, &[&replica]);
    let three = command(&table, target(), Limits::of_rows(3, NO_LIMIT));
    let given = decode(&table, &three, &encoded(&table, &whole, &partitions)).expect("rows");
    assert_eq!(given.partitions, partitions[..2]);
    assert_eq!(given.end, Some(End { key: partitions[1].key.clone(), row: row(1) }));
}
