//! Single choices, spelled out, and laws over random tables, loads and options.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::Strategy as Drawn;
use schema::CompactionParams;
use storage::compaction::{Candidate, Choice, Reason, Split, Splitter, Strategy, View};
use storage::{PartitionKey, RepairStatus};
use types::{Token, Uuid};

use super::day::{Day, Load};
use super::loads::params;

const MIB: u64 = 1 << 20;
const NOW: i64 = 1_700_000_000;

/// A table of so many bytes over a part of the ring, in percent.
fn table(id: u64, bytes: u64, (from, to): (i64, i64)) -> Candidate {
    let key = |percent: i64| {
        let from_start = i128::from(u64::MAX) * i128::from(percent) / 100;
        let token = (i128::from(i64::MIN) + 1 + from_start) as i64;
        PartitionKey { token: Token(token), bytes: percent.to_be_bytes().into() }
    };
    Candidate {
        id,
        data_bytes: bytes,
        total_bytes: bytes,
        first: key(from),
        last: key(to - 1),
        min_timestamp: (NOW + id as i64) * 1_000_000,
        max_timestamp: (NOW + id as i64) * 1_000_000 + 500,
        max_local_deletion_time: i64::MAX,
        created_millis: NOW * 1000,
        level: 0,
        repair: RepairStatus::Unrepaired,
        droppable_ratio: 0.0,
        keys: 1000,
        cells: (10, 1000),
        hotness: 0.0,
        is_compacting: false,
    }
}

fn whole(id: u64, bytes: u64) -> Candidate {
    table(id, bytes, (0, 99))
}

fn view<T>(tables: &[Candidate], with: impl FnOnce(&View<'_>) -> T) -> T {
    with(&View {
        tables,
        now_millis: (NOW + 1000) * 1000,
        gc_before: NOW,
        memtable_min_timestamp: i64::MAX,
        flush_bytes: MIB as f64,
        keys_in: &|_, _| None,
        random: &|_| 0,
    })
}

fn next(params: &CompactionParams, tables: &[Candidate]) -> Option<Choice> {
    let mut strategy = Strategy::new(params, 0);
    view(tables, |view| strategy.next(view)).map(|mut choice| {
        choice.inputs.sort_unstable();
        choice
    })
}

fn inputs(params: &CompactionParams, tables: &[Candidate]) -> Vec<u64> {
    next(params, tables).map(|choice| choice.inputs).unwrap_or_default()
}

#[test]
fn size_tiered_takes_what_is_of_one_size() {
    let params = params("SizeTieredCompactionStrategy", &[]);
    let sizes = [100, 1000, 110, 90, 105];
    let mut tables: Vec<_> = (1..).zip(sizes).map(|(id, mib)| whole(id, mib * MIB)).collect();
    assert_eq!(inputs(&params, &tables), [1, 3, 4, 5]);
    assert_eq!(inputs(&params, &tables[..4]), [0u64; 0], "three are too few");
    tables[2].is_compacting = true;
    assert_eq!(inputs(&params, &tables), [0u64; 0]);
    let small: Vec<_> = (1..).zip([1, 5, 20, 49]).map(|(id, mib)| whole(id, mib * MIB)).collect();
    assert_eq!(inputs(&params, &small), [1, 2, 3, 4], "small ones are of one size");
}

#[test]
fn size_tiered_takes_the_hottest() {
    let params = params("SizeTieredCompactionStrategy", &[("max_threshold", "4")]);
    let mut tables: Vec<_> = (1..=4).map(|id| whole(id, 100 * MIB)).collect();
    tables.extend((5..=9).map(|id| whole(id, 1000 * MIB)));
    assert_eq!(inputs(&params, &tables), [5, 6, 7, 8], "of equally hot ones the largest");
    tables[1].hotness = 1.0;
    assert_eq!(inputs(&params, &tables), [1, 2, 3, 4]);
    tables[8].hotness = 2.0;
    assert_eq!(inputs(&params, &tables), [5, 6, 7, 9], "the coldest is left out");
}

#[test]
fn one_table_goes_alone_for_its_tombstones() {
    for class in ["SizeTieredCompactionStrategy", "LeveledCompactionStrategy"] {
        let of = |options: &[(&str, &str)]| params(class, options);
        let mut table = whole(1, 100 * MIB);
        table.droppable_ratio = 0.3;
        table.level = usize::from(class.starts_with("Leveled"));
        let soon =
            next(&of(&[("tombstone_compaction_interval", "999")]), std::slice::from_ref(&table));
        let choice = soon.expect("it is worth it");
        assert_eq!((choice.reason, choice.level), (Reason::Tombstones, table.level));
        let tables = [table.clone()];
        assert_eq!(next(&of(&[]), &tables), None, "a day has not passed");
        let high = [("tombstone_compaction_interval", "1"), ("tombstone_threshold", "0.4")];
        assert_eq!(next(&of(&high), &tables), None);
        let overlapped = [table, Candidate { level: 0, ..whole(2, MIB) }];
        let checked = [("tombstone_compaction_interval", "1")];
        assert_eq!(next(&of(&checked), &overlapped), None, "another one may have what they delete");
        let unchecked =
            [("tombstone_compaction_interval", "1"), ("unchecked_tombstone_compaction", "true")];
        assert_eq!(inputs(&of(&unchecked), &overlapped), [1]);
    }
}

#[test]
fn leveled_goes_up_with_what_overlaps() {
    let params = params("LeveledCompactionStrategy", &[("sstable_size_in_mb", "10")]);
    let level_1 = |id, span| Candidate { level: 1, ..table(id, 10 * MIB, span) };
    let mut tables = vec![level_1(1, (0, 20)), level_1(2, (20, 40)), level_1(3, (60, 80))];
    tables.push(table(4, 4 * MIB, (10, 30)));
    tables.push(table(5, 4 * MIB, (25, 35)));
    let choice = next(&params, &tables).expect("two of level 0");
    assert_eq!((choice.inputs, choice.level), (vec![4, 5], 0), "too little for level 1");
    tables.push(table(6, 4 * MIB, (30, 50)));
    let choice = next(&params, &tables).expect("enough for level 1");
    assert_eq!((choice.inputs, choice.level), (vec![1, 2, 4, 5, 6], 1));
    assert_eq!(choice.split, Split::Size(10 * MIB));
}

#[test]
fn leveled_lets_no_two_of_a_level_overlap() {
    let params = params("LeveledCompactionStrategy", &[]);
    let level_1 = |id, span| Candidate { level: 1, ..table(id, MIB, span) };
    let tables = [level_1(1, (0, 20)), level_1(2, (10, 40)), level_1(3, (40, 50))];
    let strategy = Strategy::new(&params, 0);
    assert_eq!(view(&tables, |view| strategy.displaced(view)), [2], "the younger one");
}

#[test]
fn leveled_moves_one_alone() {
    let options = [("sstable_size_in_mb", "1"), ("fanout_size", "2")];
    let level_1 = |id, span| Candidate { level: 1, ..table(id, MIB, span) };
    let tables = [level_1(1, (0, 20)), level_1(2, (20, 40)), level_1(3, (40, 60))];
    let choice = next(&params("LeveledCompactionStrategy", &options), &tables).expect("full");
    assert_eq!((&choice.inputs[..], choice.level, choice.moves), (&[1][..], 2, false));
    let moves = [options[0], options[1], ("single_sstable_uplevel", "true")];
    let choice = next(&params("LeveledCompactionStrategy", &moves), &tables).expect("full");
    assert_eq!((&choice.inputs[..], choice.level, choice.moves), (&[1][..], 2, true));
}

#[test]
fn windows_do_not_mix() {
    let params = params("TimeWindowCompactionStrategy", &[("compaction_window_unit", "HOURS")]);
    let at = |id, hours: i64| Candidate {
        max_timestamp: (NOW + hours * 3600) * 1_000_000,
        ..whole(id, 100 * MIB)
    };
    let tables = [at(1, 0), at(2, 0), at(3, 5), at(4, 5), at(5, 5)];
    assert_eq!(inputs(&params, &tables), [1, 2], "of an old window two are enough");
    assert_eq!(inputs(&params, &tables[1..]), [0u64; 0], "of the newest three are not");
    let tables = [at(1, 0), at(2, 0), at(3, 5), at(4, 5), at(5, 5), at(6, 5)];
    assert_eq!(inputs(&params, &tables), [3, 4, 5, 6], "the newest first");
}

#[test]
fn what_has_expired_is_dropped_if_nothing_older_is_alive() {
    let strategy = Strategy::new(&params("TimeWindowCompactionStrategy", &[]), 0);
    let dead = |id| Candidate { max_local_deletion_time: NOW - 1, ..whole(id, MIB) };
    let expired = |tables: &[Candidate]| {
        let all: Vec<u64> = tables.iter().map(|table| table.id).collect();
        view(tables, |view| strategy.expired(view, &all))
    };
    assert_eq!(expired(&[dead(1), dead(2), whole(3, MIB)]), [1, 2]);
    let tables = [whole(1, MIB), dead(2), dead(3)];
    assert_eq!(expired(&tables), [0u64; 0], "they may delete what is in the first");
    let only =
        params("TimeWindowCompactionStrategy", &[("only_purge_repaired_tombstones", "true")]);
    let careful = Strategy::new(&only, 0);
    assert_eq!(view(&[dead(1)], |view| careful.expired(view, &[1])), [0u64; 0], "not repaired");
}

#[test]
fn repaired_and_others_stay_apart() {
    let params = params("SizeTieredCompactionStrategy", &[]);
    let mut tables: Vec<_> = (1..=6).map(|id| whole(id, 100 * MIB)).collect();
    tables[0].repair = RepairStatus::Repaired(7);
    tables[1].repair = RepairStatus::Repaired(8);
    assert_eq!(inputs(&params, &tables), [3, 4, 5, 6]);
    let strategy = Strategy::new(&params, 0);
    assert_eq!(view(&tables, |view| strategy.major(view, false)).len(), 2);
}

#[test]
fn sessions_stay_apart_from_each_other_and_from_the_rest() {
    let pending = |session| RepairStatus::Pending(Uuid(session));
    let all = [RepairStatus::Unrepaired, pending(1), pending(2), RepairStatus::Repaired(7)];
    for class in ["SizeTiered", "Leveled", "TimeWindow", "Unified"] {
        let params = params(&format!("{class}CompactionStrategy"), &[]);
        // three of each, by turns: too few for a task of any group
        let mut tables: Vec<_> = (0..12).map(|id| whole(id, MIB)).collect();
        for (table, status) in tables.iter_mut().zip(all.iter().cycle()) {
            table.repair = *status;
        }
        let mut strategy = Strategy::new(&params, 0);
        let of = |inputs: &[u64]| inputs.iter().map(|id| id % 4).collect::<BTreeSet<_>>();
        let choices = view(&tables, |view| {
            let mut choices = strategy.major(view, false);
            choices.extend(strategy.user_defined(view, &[0, 1, 2, 3, 4, 5]));
            choices.extend(strategy.next(view));
            choices
        });
        assert!(choices.len() >= 8, "{class}: {choices:?}");
        assert!(choices.iter().all(|choice| of(&choice.inputs).len() == 1), "{class}: {choices:?}");
    }
}

/// What a session gives back keeps its level, unless another one of the group is in its place.
#[test]
fn each_state_has_its_own_levels() {
    let params = params("LeveledCompactionStrategy", &[]);
    let mut tables: Vec<_> = (1..=2).map(|id| whole(id, MIB)).collect();
    tables.iter_mut().for_each(|table| table.level = 2);
    tables[1].repair = RepairStatus::Pending(Uuid(1));
    let strategy = Strategy::new(&params, 0);
    assert_eq!(view(&tables, |view| strategy.displaced(view)), [0u64; 0]);
    tables[1].repair = RepairStatus::Unrepaired;
    assert_eq!(view(&tables, |view| strategy.displaced(view)), [2]);
}

#[test]
fn tombstones_of_pending_tables_wait_for_their_repair() {
    let only =
        params("SizeTieredCompactionStrategy", &[("only_purge_repaired_tombstones", "true")]);
    let strategy = Strategy::new(&only, 0);
    let mut table = whole(1, MIB);
    for (status, may) in [
        (RepairStatus::Unrepaired, false),
        (RepairStatus::Pending(Uuid(1)), false),
        (RepairStatus::Repaired(7), true),
    ] {
        table.repair = status;
        assert_eq!(strategy.may_purge([&table]), may, "{status:?}");
    }
}

#[test]
fn unified_splits_by_density() {
    let options = [
        ("scaling_parameters", "T4"),
        ("target_sstable_size", "100MiB"),
        ("min_sstable_size", "1MiB"),
        ("sstable_growth", "0"),
        ("flush_size_override", "100MiB"),
    ];
    let params = params("UnifiedCompactionStrategy", &options);
    let tables: Vec<_> = (1..=4).map(|id| whole(id, 200 * MIB)).collect();
    let choice = next(&params, &tables).expect("four of a level");
    assert_eq!(choice.inputs, [1, 2, 3, 4]);
    assert_eq!(choice.split, Split::Shards(8), "800 MiB at about 100 MiB each");
    // four that meet at no key are not to be compacted
    let apart: Vec<_> =
        (0..4).map(|n| table(n + 1, 50 * MIB, (25 * n as i64, 25 * n as i64 + 20))).collect();
    assert_eq!(inputs(&params, &apart), [0u64; 0]);
}

#[test]
fn outputs_end_where_they_should() {
    let at = |percent| table(1, 1, (percent, percent + 2)).first.token;
    let mut size = Splitter::new(Split::Size(10), 3);
    assert_eq!([5, 10, 11].map(|written| size.cuts(at(0), written, false)), [false, false, true]);
    assert_eq!(size.level(), 3);
    let mut levels = Splitter::new(Split::Levels { bytes: 10, fanout: 2 }, 0);
    let mut of = Vec::new();
    for _ in 0..5 {
        of.push(levels.level());
        assert!(levels.cuts(at(0), 11, false));
    }
    assert_eq!(of, [1, 1, 2, 2, 2], "22 bytes are more than the first level's 20");
    let mut halves = Splitter::new(Split::Halves(200 * 1_000_000), 0);
    let written = [99, 101, 49, 51, 200];
    let cuts = written.map(|mega| halves.cuts(at(0), mega * 1_000_000, false));
    assert_eq!(cuts, [false, true, false, true, false], "a half, a quarter, the rest");
    let mut shards = Splitter::new(Split::Shards(4), 0);
    let tokens = [(10, true), (20, false), (30, false), (80, false), (81, false)];
    let cuts = tokens.map(|(percent, is_empty)| shards.cuts(at(percent), 1, is_empty));
    assert_eq!(cuts, [false, false, true, true, false]);
}

fn any_params() -> impl Drawn<Value = (CompactionParams, Load)> {
    let size = prop::sample::select(vec!["8", "32", "160"]);
    let fanout = prop::sample::select(vec!["2", "4", "10"]);
    let moves = prop::sample::select(vec!["true", "false"]);
    let scaling = prop::sample::select(vec!["T2", "T4", "L4", "L10", "N", "T4, L8", "-6"]);
    let target = prop::sample::select(vec!["16MiB", "64MiB", "1GiB"]);
    let growth = prop::sample::select(vec!["0", "0.333", "1"]);
    let inclusion = prop::sample::select(vec!["NONE", "SINGLE", "TRANSITIVE"]);
    let min = prop::sample::select(vec!["2", "4"]);
    let leveled = (size, fanout, moves, any::<bool>()).prop_map(|(size, fanout, moves, series)| {
        let options = [
            ("sstable_size_in_mb", size),
            ("fanout_size", fanout),
            ("single_sstable_uplevel", moves),
        ];
        let load = if series { Load::Series } else { Load::Updates };
        (params("LeveledCompactionStrategy", &options), load)
    });
    let unified = (scaling, target, growth, inclusion, any::<bool>()).prop_map(
        |(scaling, target, growth, inclusion, series)| {
            let options = [
                ("scaling_parameters", scaling),
                ("target_sstable_size", target),
                ("sstable_growth", growth),
                ("overlap_inclusion_method", inclusion),
                ("min_sstable_size", "2MiB"),
            ];
            let load = if series { Load::Series } else { Load::Updates };
            (params("UnifiedCompactionStrategy", &options), load)
        },
    );
    let windows = min.clone().prop_map(|min| {
        let options = [("compaction_window_unit", "HOURS"), ("min_threshold", min)];
        (params("TimeWindowCompactionStrategy", &options), Load::Series)
    });
    let tiered = (min, any::<bool>()).prop_map(|(min, series)| {
        let load = if series { Load::Series } else { Load::Updates };
        (params("SizeTieredCompactionStrategy", &[("min_threshold", min)]), load)
    });
    prop_oneof![3 => leveled, 3 => unified, 1 => windows, 1 => tiered]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever the options: tasks take what is free, their outputs do not overlap, levels above
    /// the first never do, windows do not mix, an output lies in one shard, nothing that was
    /// written is lost, nothing comes back; and when nothing more is written there is an end.
    #[test]
    fn laws_hold((params, load) in any_params(), seed in 1u64..1000, minutes in 30u64..90) {
        let mut day = Day::new(params, load, seed);
        day.run(minutes);
        day.compare();
        day.settle();
        day.compare();
        day.major(seed % 2 == 0);
    }
}
