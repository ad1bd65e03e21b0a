//! What purging leaves.

mod common;

use common::*;
use proptest::prelude::*;
use rows::*;

fn purge(facts: &[&RowFact], purger: &Purger<'_>) -> Option<Remains> {
    let layout = layout();
    let (mut builder, mut out) = (RowBuilder::new(), RowBuilder::new());
    let row = build_row(&layout, Some(&clustering_of(&[1, 1])), facts, &mut builder);
    purge_row(&layout, row, purger, &mut out).map(Remains::of)
}

#[test]
fn expired_cells_become_tombstones_first() {
    let cell = CellRef::expiring(0, None, 5, 100, 1100, b"text");
    let fact = RowFact::Cell(CellFact::of(cell));
    let at = |now, gc_before| {
        let purger = Purger { now, gc_before, strict_liveness: false, purgeable: &|_| true };
        purge(&[&fact], &purger).map(|remains| remains.cells)
    };
    assert_eq!(at(1099, 0), Some(vec![CellFact::of(cell)]));
    // The tombstone counts from when the cell was written.
    let tombstone = vec![CellFact::of(CellRef::tombstone(0, None, 5, 1000))];
    assert_eq!(at(1100, 1000), Some(tombstone));
    assert_eq!(at(1100, 1001), None);
}

#[test]
fn what_other_sources_may_hold_is_remembered() {
    let facts =
        [RowFact::Deletion(Deletion::new(5, 1000)), RowFact::Complex(2, Deletion::new(7, 1000))];
    let facts: Vec<_> = facts.iter().collect();
    let below = |limit: i64| {
        let purgeable = move |timestamp: i64| timestamp < limit;
        let purger =
            Purger { now: 5000, gc_before: 2000, strict_liveness: false, purgeable: &purgeable };
        purge(&facts, &purger)
    };
    assert_eq!(below(8), None);
    let left = below(6).expect("the younger deletion");
    assert!(left.deletion.is_live());
    assert_eq!(left.cells.len(), 1);
    assert_eq!(below(5).expect("both").deletion, Deletion::new(5, 1000));
}

#[test]
fn strict_liveness_asks_no_cell() {
    let facts = [
        RowFact::Liveness(Liveness::expiring(5, 10, 1000)),
        RowFact::Cell(CellFact::of(CellRef::live(1, None, 5, &[0, 0, 0, 1]))),
    ];
    let facts: Vec<_> = facts.iter().collect();
    assert_eq!(purge(&facts, &Purger::live_only(1000, true)), None);
    let left = purge(&facts, &Purger::live_only(1000, false)).expect("the cell");
    assert_eq!((left.liveness, left.cells.len()), (None, 1));
}

#[test]
fn a_boundary_may_lose_a_side() {
    let values = clustering_of(&[1]);
    let bound = BoundRef::new(BoundKind::InclEndExclStart, values.as_ref());
    let (old, young) = (Deletion::new(1, 1000), Deletion::new(9, 1000));
    let purger =
        Purger { now: 5000, gc_before: 2000, strict_liveness: false, purgeable: &|ts| ts < 5 };
    let purge = |end, start| purge_marker(MarkerRef::boundary(bound, end, start), &purger);
    assert_eq!(purge(old, old), None);
    let start = bound.with_kind(BoundKind::ExclStart);
    assert_eq!(purge(old, young), Some(MarkerRef::bound(start, young)));
    let end = bound.with_kind(BoundKind::InclEnd);
    assert_eq!(purge(young, old), Some(MarkerRef::bound(end, young)));
    assert_eq!(purge(young, young), Some(MarkerRef::boundary(bound, young, young)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn live_only_leaves_what_is_alive(
        facts in prop::collection::vec(row_fact(false), 0..16),
        now in 998i64..1004,
    ) {
        let layout = layout();
        let (mut builder, mut out) = (RowBuilder::new(), RowBuilder::new());
        let facts: Vec<_> = facts.iter().collect();
        let row = build_row(&layout, Some(&clustering_of(&[1, 1])), &facts, &mut builder);
        let before = Remains::of(row);
        let left = purge_row(&layout, row, &Purger::live_only(now, false), &mut out);
        prop_assert_eq!(left.is_some_and(|left| !left.is_empty()), row.has_live_data(now, false));
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            prop_assert!(!left.has_deletion(now));
            prop_assert!(left.deletion().is_live());
            let alive: Vec<_> = row.cells().filter(|cell| cell.is_live(now)).collect();
            prop_assert_eq!(left.cells().collect::<Vec<_>>(), alive);
            prop_assert_eq!(left.liveness(), before.liveness.filter(|l| l.is_live(now)));
            if !row.has_deletion(now) {
                // Handed through.
                prop_assert_eq!(left.as_packed().as_ptr(), row.as_packed().as_ptr());
            }
        }
    }
}
