//! Laws of the merge, against a naive model.

mod common;

use common::*;
use proptest::prelude::*;
use rows::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The merged stream of several updates, packed, and the partition deletion.
fn merged(layout: &Layout, updates: &[PartitionUpdate], reversed: bool) -> Vec<Vec<u8>> {
    let deletion = updates.iter().map(|u| u.deletion).fold(Deletion::LIVE, Deletion::max);
    let mut streams: Vec<_> = updates.iter().map(|u| u.unfiltereds(reversed).peekable()).collect();
    let mut merger = UnfilteredMerger::new(streams.len(), deletion, reversed);
    let mut builder = RowBuilder::new();
    let mut out = Vec::new();
    loop {
        let heads: Vec<_> = streams.iter_mut().map(|s| s.peek().copied()).collect();
        match merger.step(layout, &heads[..], &mut builder) {
            Step::End => return out,
            Step::Nothing => {}
            Step::Next(unfiltered) => {
                let mut packed = Vec::new();
                unfiltered.pack(&mut packed);
                out.push(packed);
            }
        }
        for source in merger.consumed() {
            streams[*source].next();
        }
    }
}

fn split(facts: &[(usize, Fact)], sources: usize) -> Vec<Vec<Fact>> {
    let mut parts = vec![Vec::new(); sources];
    for (source, fact) in facts {
        parts[source % sources].push(fact.clone());
    }
    parts
}

/// `Rows.merge`: in a memtable and in a batch the deletion of a complex column stays beside the
/// row's of the same time, whichever came first, and one that is older goes; `Row.Merger`, of what
/// is read, drops both.
#[test]
fn a_memtable_keeps_the_deletion_of_a_column_at_the_time_of_the_row_s() {
    let layout = layout();
    let clustering = Clustering::new([Some([0, 0, 0, 1].as_slice()), Some(b"a")]);
    let row = |deletion: Deletion, complex: Deletion| {
        let mut row = RowBuilder::new();
        row.start_row(clustering.as_ref());
        row.deletion(deletion);
        if !complex.is_live() {
            row.complex_deletion(2, complex);
            row.cell(CellRef::live(2, Some(b"q"), 8, b""));
        }
        row.finish(&layout).to_vec()
    };
    let cells = |row: Option<RowRef<'_>>| -> Vec<_> {
        let cells = row.into_iter().flat_map(|row| row.cells());
        cells.map(|cell| (cell.is_complex_deletion(), cell.timestamp)).collect()
    };
    let at = |timestamp, seconds| Deletion::new(timestamp, seconds);
    let deleted = row(at(7, 100), Deletion::LIVE);
    let (kept, dropped) = (vec![(true, 7), (false, 8)], vec![(false, 8)]);
    for (complex, expected) in [(at(7, 100), &kept), (at(7, 101), &kept), (at(7, 99), &dropped)] {
        let column = row(Deletion::LIVE, complex);
        for (old, new) in [(&deleted, &column), (&column, &deleted)] {
            let (old, new) = (RowRef::from_packed(old), RowRef::from_packed(new));
            let mut out = RowBuilder::new();
            assert_eq!(cells(update_row(&layout, old, new, &mut out)), *expected);
            let later = RowRef::from_packed(&deleted);
            let all = update_versions(&layout, [old, new, later].into_iter(), &mut out);
            assert_eq!(cells(all), *expected);
            let read = merge_rows(&layout, old, new, Deletion::LIVE, &mut out);
            let expected = if complex == at(7, 101) { &kept } else { &dropped };
            assert_eq!(cells(read), *expected);
        }
    }
    let mut update = UpdateBuilder::new([1; 16], layout.clone(), b"k");
    let column = row(Deletion::LIVE, at(7, 100));
    update.add(RowRef::from_packed(&column), &mut RowBuilder::new());
    update.add(RowRef::from_packed(&deleted), &mut RowBuilder::new());
    let update = update.finish(&mut RowBuilder::new());
    assert_eq!(cells(update.rows.iter().next()), kept);
}

/// `Row.filter`: where nothing is merged, the deletion of a complex column stays that is as old as
/// what deletes the row.
#[test]
fn only_a_merge_drops_the_deletion_of_a_column_at_the_time_of_another() {
    let layout = layout();
    let clustering = Clustering::new([Some([0, 0, 0, 1].as_slice()), Some(b"a")]);
    let at = |timestamp| Deletion::new(timestamp, 100);
    let filtered = |row_deletion: Deletion, active: Deletion| {
        let (mut row, mut out) = (RowBuilder::new(), RowBuilder::new());
        row.start_row(clustering.as_ref());
        row.liveness(Liveness::new(5));
        row.deletion(row_deletion);
        row.complex_deletion(2, at(7));
        row.cell(CellRef::live(2, Some(b"p"), 7, b""));
        row.cell(CellRef::live(2, Some(b"q"), 8, b""));
        let kept = filter_row(&layout, row.finish_row(&layout), active, &mut out);
        kept.map_or(Vec::new(), |row| {
            row.cells().map(|cell| (cell.is_complex_deletion(), cell.timestamp)).collect()
        })
    };
    assert_eq!(filtered(Deletion::LIVE, at(7)), [(true, 7), (false, 8)]);
    assert_eq!(filtered(Deletion::LIVE, at(6)), [(true, 7), (false, 7), (false, 8)]);
    assert_eq!(filtered(Deletion::LIVE, at(8)), []);
    assert_eq!(filtered(at(6), at(5)), [(true, 7), (false, 7), (false, 8)]);
    let merged = |active| {
        let (mut row, mut out) = (RowBuilder::new(), RowBuilder::new());
        row.start_row(clustering.as_ref());
        row.complex_deletion(2, at(7));
        row.cell(CellRef::live(2, Some(b"q"), 8, b""));
        let row = row.finish_row(&layout);
        merge_rows(&layout, row, row, active, &mut out).map_or(0, |row| row.cells().count())
    };
    assert_eq!((merged(at(6)), merged(at(7))), (2, 1));
}

/// `Cells.resolveRegular`, rule by rule: each wins over all before it.
#[test]
fn of_two_cells_the_stronger_wins() {
    let ascending = [
        CellRef::live(0, None, 5, b""),
        CellRef::live(0, None, 5, b"a"),
        CellRef::live(0, None, 5, b"ab"),
        CellRef::live(0, None, 5, b"b"),
        CellRef::expiring(0, None, 5, 9, 1000, b"z"),
        CellRef::expiring(0, None, 5, 8, 1000, b"a"),
        CellRef::expiring(0, None, 5, 8, 1000, b"b"),
        CellRef::expiring(0, None, 5, 9, 1001, b"a"),
        CellRef::tombstone(0, None, 5, 100),
        CellRef::tombstone(0, None, 5, 101),
        CellRef::live(0, None, 6, b""),
    ];
    for (at, strong) in ascending.iter().enumerate() {
        for weak in &ascending[..at] {
            assert_eq!(reconcile(*weak, *strong), *strong);
            assert_eq!(reconcile(*strong, *weak), *strong);
        }
    }
}

/// `LivenessInfo.supersedes`, the same way.
#[test]
fn of_two_livenesses_the_stronger_wins() {
    let ascending = [
        Liveness::new(5),
        Liveness::expiring(5, 9, 1000),
        Liveness::expiring(5, 8, 1000),
        Liveness::expiring(5, 9, 1001),
        Liveness::expiring(5, i32::MAX, 10),
        Liveness::new(6),
    ];
    for (at, strong) in ascending.iter().enumerate() {
        for weak in &ascending[..at] {
            assert!(strong.supersedes(weak) && !weak.supersedes(strong));
        }
        assert!(!strong.supersedes(strong));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn streams_merge_to_what_the_model_says(
        facts in prop::collection::vec((0usize..12, fact()), 0..60),
        // of one alone nothing is merged: the test above
        sources in 2usize..12,
    ) {
        let layout = layout();
        let parts = split(&facts, sources);
        let updates: Vec<_> = parts.iter().map(|part| update_of(&layout, part)).collect();
        let facts: Vec<_> = facts.into_iter().map(|(_, fact)| fact).collect();
        let partition = partition_deletion(&facts);
        let stream = merged(&layout, &updates, false);

        let mut rows_left = BTreeMap::new();
        let mut open: Option<Deletion> = None;
        let mut covered: BTreeMap<Vec<u8>, Deletion> = BTreeMap::new();
        let mut probes = all_clusterings();
        probes.sort_by(|a, b| compare_clusterings(&layout, a.as_ref(), b.as_ref()));
        let mut probes = probes.into_iter().peekable();
        let mut last: Option<Vec<u8>> = None;
        for packed in &stream {
            let unfiltered = Unfiltered::from_packed(packed);
            if let Some(last) = &last {
                let before = Unfiltered::from_packed(last).position();
                prop_assert_eq!(compare(&layout, before, unfiltered.position()), Ordering::Less);
            }
            last = Some(packed.clone());
            while let Some(probe) = probes.next_if(|probe| {
                compare(&layout, probe, unfiltered.position()) == Ordering::Less
            }) {
                covered.insert(probe.as_ref().as_packed().into(), open.unwrap_or(Deletion::LIVE));
            }
            match unfiltered {
                Unfiltered::Row(row) => {
                    prop_assert!(!row.is_empty());
                    let clustering = row.clustering().as_packed().to_vec();
                    rows_left.insert(clustering, Remains::of_updates(row));
                }
                Unfiltered::Marker(marker) => {
                    prop_assert_eq!(marker.closes(false), open);
                    prop_assert_ne!(marker.opens(false), open);
                    open = marker.opens(false);
                }
            }
        }
        prop_assert_eq!(open, None);
        for clustering in all_clusterings() {
            let key = clustering.as_ref().as_packed();
            let ranges = parts.iter().map(|part| covering(&layout, part, &clustering));
            let ranges = ranges.fold(Deletion::LIVE, Deletion::max);
            let expected = if ranges.supersedes(&partition) { ranges } else { Deletion::LIVE };
            let found = covered.get(key).copied().unwrap_or(Deletion::LIVE);
            prop_assert_eq!(found, expected);
            let of_row: Vec<_> = facts
                .iter()
                .filter_map(|fact| match fact {
                    Fact::Row(Some(at), fact) if *at == clustering => Some(fact),
                    _ => None,
                })
                .collect();
            let expected = remains(&of_row, partition.max(ranges));
            let found = rows_left.remove(key);
            prop_assert_eq!(found, Some(expected).filter(|remains| !remains.is_empty()));
        }
        prop_assert!(rows_left.is_empty());

        let mut reversed = merged(&layout, &updates, true);
        reversed.reverse();
        prop_assert_eq!(reversed, stream);

        let statics: Vec<_> = facts
            .iter()
            .filter_map(|f| if let Fact::Row(None, fact) = f { Some(fact) } else { None })
            .collect();
        let mut builder = RowBuilder::new();
        let versions = updates.iter().filter_map(|update| update.static_row());
        let found = merge_versions(&layout, versions, partition, &mut builder).map(Remains::of_updates);
        let expected = Some(remains(&statics, partition)).filter(|remains| !remains.is_empty());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn merging_rows_is_commutative_associative_and_idempotent(
        facts in prop::collection::vec((0usize..3, row_fact(false)), 0..24),
        active in prop::option::of(0i64..16),
    ) {
        let layout = layout();
        let active = active.map_or(Deletion::LIVE, |ts| Deletion::new(ts, 1000));
        let at = clustering_of(&[1, 2]);
        let mut builder = RowBuilder::new();
        let rows: Vec<Vec<u8>> = (0..3)
            .map(|source| {
                let facts: Vec<_> =
                    facts.iter().filter(|(s, _)| *s == source).map(|(_, f)| f).collect();
                build_row(&layout, Some(&at), &facts, &mut builder).as_packed().to_vec()
            })
            .collect();
        let merge = |a: &[u8], b: &[u8], active| {
            let (a, b) = (RowRef::from_packed(a), RowRef::from_packed(b));
            let mut out = RowBuilder::new();
            merge_rows(&layout, a, b, active, &mut out).map(|row| row.as_packed().to_vec())
        };
        let empty = {
            builder.start_row(at.as_ref());
            builder.finish(&layout).to_vec()
        };
        let or_empty = |row: Option<Vec<u8>>| row.unwrap_or_else(|| empty.clone());
        let [a, b, c] = [&rows[0], &rows[1], &rows[2]];
        let ab = or_empty(merge(a, b, Deletion::LIVE));
        prop_assert_eq!(&ab, &or_empty(merge(b, a, Deletion::LIVE)));
        let bc = or_empty(merge(b, c, Deletion::LIVE));
        let abc = merge(&ab, c, active);
        prop_assert_eq!(&abc, &merge(a, &bc, active));
        // The deletion in force may be applied early as well.
        let early = or_empty(merge(a, b, active));
        prop_assert_eq!(&abc, &merge(&early, c, active));
        let abc = or_empty(abc);
        prop_assert_eq!(&abc, &or_empty(merge(&abc, &abc, active)));
        let three = rows.iter().map(|row| RowRef::from_packed(row));
        let at_once = merge_versions(&layout, three, active, &mut builder);
        prop_assert_eq!(&abc, &or_empty(at_once.map(|row| row.as_packed().to_vec())));
        let facts: Vec<_> = facts.iter().map(|(_, f)| f).collect();
        prop_assert_eq!(Remains::of(RowRef::from_packed(&abc)), remains(&facts, active));
        // One row of all facts is the merge of their rows.
        let whole = build_row(&layout, Some(&at), &facts, &mut builder).as_packed().to_vec();
        prop_assert_eq!(or_empty(merge(&whole, &empty, active)), abc);
    }

    /// An update is merged the same way whether it is put into the row or both are gone through.
    #[test]
    fn an_update_of_some_columns_is_what_the_merge_makes_of_it(
        rows in prop::array::uniform2((
            prop::option::of(0_i64..4),
            prop::collection::btree_map(0_u16..2, (0_i64..4, 0_usize..3, prop::bool::weighted(0.1)), 0..3),
            prop::collection::btree_map(0_u8..4, (0_i64..4, 0_usize..3), 0..3),
        )),
        is_update in prop::bool::weighted(0.8),
    ) {
        let layout = layout();
        let at = Clustering::new([Some([0, 0, 0, 1].as_slice()), Some(b"a")]);
        let values = [&b""[..], b"0001", b"some more"];
        let mut builder = RowBuilder::new();
        let mut packed = rows.iter().enumerate().map(|(n, (liveness, simple, complex))| {
            let is_second = n == 1;
            builder.start_row(at.as_ref());
            if let Some(timestamp) = liveness.filter(|_| !(is_second && is_update)) {
                builder.liveness(Liveness::new(timestamp));
            }
            for (column, (timestamp, value, is_tombstone)) in simple {
                builder.cell(match is_tombstone {
                    true => CellRef::tombstone(*column, None, *timestamp, 5),
                    false => CellRef::live(*column, None, *timestamp, values[*value]),
                });
            }
            let entries = complex.iter().filter(|_| !(is_second && is_update));
            for (path, (timestamp, value)) in entries {
                builder.cell(CellRef::live(2, Some(&[*path]), *timestamp, values[*value]));
            }
            builder.finish(&layout).to_vec()
        });
        let (old, new) = (packed.next().unwrap_or_default(), packed.next().unwrap_or_default());
        drop(packed);
        let (old, new) = (RowRef::from_packed(&old), RowRef::from_packed(&new));
        let mut other = RowBuilder::new();
        let merged = merge_versions(&layout, [old, new].into_iter(), Deletion::LIVE, &mut other);
        prop_assert_eq!(update_row(&layout, old, new, &mut builder), merged);
    }

    #[test]
    fn what_a_range_list_deletes_does_not_depend_on_the_order_of_insertion(
        ranges in prop::collection::vec(range(), 0..12),
        slice in range(),
    ) {
        let layout = layout();
        let list_of = |ranges: &mut dyn Iterator<Item = &RangeTombstone>| {
            let mut list = RangeTombstoneList::new();
            ranges.for_each(|range| list.insert(&layout, range.clone()));
            list
        };
        let list = list_of(&mut ranges.iter());
        let backwards = list_of(&mut ranges.iter().rev());
        for pair in list.iter().collect::<Vec<_>>().windows(2) {
            let order = compare(&layout, &pair[0].end, &pair[1].start);
            prop_assert_ne!(order, Ordering::Greater);
            prop_assert!(order == Ordering::Less || pair[0].deletion != pair[1].deletion);
        }
        let facts: Vec<_> = ranges.iter().cloned().map(Fact::Range).collect();
        for at in all_clusterings() {
            let found = list.covering(&layout, at.as_ref()).unwrap_or(Deletion::LIVE);
            prop_assert_eq!(found, covering(&layout, &facts, &at));
            let other = backwards.covering(&layout, at.as_ref()).unwrap_or(Deletion::LIVE);
            prop_assert_eq!(other.marked_for_delete_at, found.marked_for_delete_at);
        }

        let (start, end) = (slice.start.as_ref(), slice.end.as_ref());
        let markers: Vec<_> = list.markers_within(&layout, start, end, false).collect();
        let mut reversed: Vec<_> = list.markers_within(&layout, start, end, true).collect();
        reversed.reverse();
        prop_assert_eq!(&markers, &reversed);
        let mut cut = RangeTombstoneList::new();
        let mut open: Option<(Bound, Deletion)> = None;
        for marker in &markers {
            prop_assert_ne!(compare(&layout, marker.bound, start), Ordering::Less);
            prop_assert_ne!(compare(&layout, marker.bound, end), Ordering::Greater);
            prop_assert_eq!(open.as_ref().map(|(_, deletion)| *deletion), marker.closes(false));
            if let Some((start, deletion)) = open.take() {
                let end = marker.bound.with_kind(marker.bound.kind.end_of()).to_owned();
                cut.insert(&layout, RangeTombstone { start, end, deletion });
            }
            if let Some(deletion) = marker.opens(false) {
                let kind = marker.bound.kind.start_of();
                open = Some((marker.bound.with_kind(kind).to_owned(), deletion));
            }
        }
        prop_assert!(open.is_none());
        for at in all_clusterings() {
            let inside = compare(&layout, start, &at) == Ordering::Less
                && compare(&layout, &at, end) == Ordering::Less;
            let expected = list.covering(&layout, at.as_ref()).filter(|_| inside);
            prop_assert_eq!(cut.covering(&layout, at.as_ref()), expected);
        }
    }

    #[test]
    fn what_another_version_makes_needless_is_not_missed(
        of_row in prop::collection::vec(row_fact(false), 1..12),
        of_version in prop::collection::vec(row_fact(false), 1..12),
    ) {
        let layout = layout();
        let update = |facts: Vec<RowFact>| {
            let clustering = Clustering::new([Some(&[0, 0, 0, 1][..]), Some(&b"a"[..])]);
            let facts = facts.into_iter().map(|fact| Fact::Row(Some(clustering.clone()), fact));
            update_of(&layout, &facts.collect::<Vec<_>>())
        };
        let (of_row, of_version) = (update(of_row), update(of_version));
        prop_assume!(of_row.rows.get(0).is_some() && of_version.rows.get(0).is_some());
        // as reads have them: in an update the deletion of a column may stand beside the row's of
        // the same time
        let as_read = |update: &PartitionUpdate| {
            let (row, mut out) = (update.rows.get(0).unwrap(), RowBuilder::new());
            let merged = merge_rows(&layout, row, row, Deletion::LIVE, &mut out);
            merged.expect("not empty").as_packed().to_vec()
        };
        let (row, version) = (as_read(&of_row), as_read(&of_version));
        let (row, version) = (RowRef::from_packed(&row), RowRef::from_packed(&version));
        let (mut kept, mut out, mut again) = (RowBuilder::new(), RowBuilder::new(), RowBuilder::new());
        let all = merge_rows(&layout, row, version, Deletion::LIVE, &mut out);
        let left = without_shadowed(&layout, row, version, &mut kept);
        let cells = |row: Option<RowRef<'_>>| row.map_or(0, |row| row.cells().count());
        prop_assert!(cells(left) <= row.cells().count());
        let versions = left.into_iter().chain([version]);
        let merged = merge_versions(&layout, versions, Deletion::LIVE, &mut again);
        prop_assert_eq!(merged.map(|row| row.as_packed()), all.map(|row| row.as_packed()));
        // nothing that is the version's own is left: only what is later
        let same = without_shadowed(&layout, row, row, &mut kept);
        prop_assert_eq!(cells(same), 0);
    }
}
