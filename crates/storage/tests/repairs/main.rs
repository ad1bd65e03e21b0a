//! What incremental repair does to SSTables, over random sequences of steps: nothing is lost,
//! ranges are split exactly, and SSTables of different states never meet.

mod world;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use types::{Token, TokenRange};

use world::{Plan, Step, run};

/// Power cuts in one anticompaction, and how far apart.
const CUTS: u64 = 250;
const CUT_EVERY_MICROS: u64 = 250;

const PLANS: [Plan; 4] = [
    Plan {
        class: "SizeTieredCompactionStrategy",
        options: &[("min_sstable_size", "0"), ("min_threshold", "2")],
    },
    Plan {
        class: "LeveledCompactionStrategy",
        options: &[("sstable_size_in_mb", "1"), ("fanout_size", "2")],
    },
    Plan {
        class: "TimeWindowCompactionStrategy",
        options: &[("compaction_window_unit", "MINUTES"), ("min_threshold", "2")],
    },
    Plan {
        class: "UnifiedCompactionStrategy",
        options: &[
            ("scaling_parameters", "T2"),
            ("target_sstable_size", "1MiB"),
            ("min_sstable_size", "0B"),
            ("flush_size_override", "1MiB"),
        ],
    },
];

fn ranges() -> impl Strategy<Value = Vec<TokenRange>> {
    let token = || any::<i64>().prop_map(Token);
    let range = (token(), token()).prop_map(|(left, right)| TokenRange { left, right });
    let ranges = prop::collection::vec(range, 1..4).prop_map(TokenRange::normalize);
    prop_oneof![4 => ranges, 1 => Just(vec![TokenRange::ALL])]
}

fn step() -> impl Strategy<Value = Step> {
    let (table, session) = (|| 0u8..2, || 1u8..4);
    prop_oneof![
        8 => table().prop_map(Step::Write),
        1 => table().prop_map(Step::Major),
        1 => (table(), any::<u8>()).prop_map(|(table, which)| Step::UserDefined(table, which)),
        1 => table().prop_map(Step::Garbage),
        1 => table().prop_map(Step::Scrub),
        2 => Just(Step::Idle),
        5 => (session(), ranges()).prop_map(|(session, ranges)| Step::Anticompact(session, ranges)),
        2 => (ranges(), 0u64..60_000).prop_map(|(ranges, micros)| Step::Cancel(ranges, micros)),
        6 => (session(), any::<bool>()).prop_map(|(session, ok)| Step::Release(session, ok)),
        1 => Just(Step::Crash),
        2 => (ranges(), 0u64..60_000).prop_map(|(ranges, micros)| Step::CrashIn(ranges, micros)),
    ]
}

/// As many random sequences, drawn from a seed, and what they show together.
fn runs(
    plan: Plan,
    count: u32,
    bug: Option<&'static str>,
) -> (Vec<String>, BTreeMap<&'static str, u64>) {
    let mut counts = BTreeMap::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 16..24);
    for seed in 1..=u64::from(count) {
        let drawn = steps.new_tree(&mut runner).expect("steps").current();
        let seen = run(seed, plan, &drawn, bug);
        for (what, count) in seen.counts {
            *counts.entry(what).or_default() += count;
        }
        if !seen.wrong.is_empty() {
            let steps = if bug.is_none() { format!("{drawn:?}") } else { String::new() };
            let wrong = seen.wrong.into_iter().map(|wrong| format!("seed {seed}: {wrong} {steps}"));
            return (wrong.collect(), counts);
        }
    }
    (Vec::new(), counts)
}

fn holds(plan: Plan) -> BTreeMap<&'static str, u64> {
    let (wrong, counts) = runs(plan, 16, None);
    assert_eq!(wrong, [""; 0]);
    for what in ["anticompacted", "refused", "cancelled", "repaired", "failed", "crashes"] {
        assert!(counts.contains_key(what), "{what} never happened: {counts:?}");
    }
    counts
}

#[test]
fn size_tiered() {
    holds(PLANS[0]);
}

#[test]
fn leveled() {
    assert!(holds(PLANS[1]).contains_key("levels"));
}

/// What two sessions give back at once overlaps what took its place in its level, in each group:
/// all of it goes to level 0.
#[test]
fn levels_are_settled_in_each_group() {
    let (lower, upper) = ((Token::MIN, Token(0)), (Token(0), Token::MIN));
    let fill = || {
        let writes = std::iter::repeat_n(Step::Write(0), 7);
        let (before, after) = ([Step::Auto(false)], [Step::Auto(true), Step::Idle]);
        before.into_iter().chain(writes).chain(after)
    };
    let mut steps = Vec::new();
    for (session, (left, right)) in [(1, (Token::MIN, Token::MIN)), (2, lower), (3, upper)] {
        steps.extend(fill());
        steps.push(Step::Anticompact(session, vec![TokenRange { left, right }]));
        if session == 1 {
            steps.push(Step::Release(session, true));
        }
    }
    steps.extend(fill());
    let at_once = [Step::Auto(false), Step::Release(2, true), Step::Release(3, false)];
    steps.extend(at_once.into_iter().chain([Step::Auto(true), Step::Idle]));
    let seen = run(1, PLANS[1], &steps, None);
    assert_eq!(seen.wrong, [""; 0]);
    let counts = ["anticompacted", "repaired", "failed"].map(|what| seen.counts.get(what));
    assert_eq!(counts, [Some(&3), Some(&2), Some(&1)]);
}

#[test]
fn time_windows() {
    holds(PLANS[2]);
}

#[test]
fn unified() {
    holds(PLANS[3]);
}

/// A power cut at many points of one anticompaction; what was wrong, and what happened.
fn cut(bug: Option<&'static str>) -> (Vec<String>, BTreeMap<&'static str, u64>) {
    let ranges = vec![TokenRange { left: Token(i64::MIN / 2), right: Token(i64::MAX / 2) }];
    let mut counts = BTreeMap::new();
    for point in 0..CUTS {
        let cut = Step::CrashIn(ranges.clone(), point * CUT_EVERY_MICROS);
        let steps = [Step::Write(0), Step::Write(1), cut, Step::Idle];
        let seen = run(1, PLANS[0], &steps, bug);
        for (what, count) in seen.counts {
            *counts.entry(what).or_default() += count;
        }
        if !seen.wrong.is_empty() {
            return (seen.wrong, counts);
        }
    }
    (Vec::new(), counts)
}

#[test]
fn power_cuts_leave_one_side_of_each_step() {
    let (wrong, counts) = cut(None);
    assert_eq!(wrong, [""; 0]);
    for what in ["left by a crash", "transaction.redone", "transaction.undone"] {
        assert!(counts.get(what).is_some_and(|count| *count >= 3), "{what}: {counts:?}");
    }
    assert!(counts["left by a crash"] < CUTS, "the first cuts are before it begins");
    for bug in ["inputs_removed_before_commit", "flush_published_before_sync"] {
        assert!(!cut(Some(bug)).0.is_empty(), "{bug} is not found");
    }
}

/// Each of these bugs is found.
#[test]
fn bugs_would_be_found() {
    for bug in [
        "repair_states_mixed",
        "repair_status_not_written",
        "anticompaction_takes_all",
        "anticompaction_loses_the_rest",
    ] {
        let (wrong, _) = runs(PLANS[0], 8, Some(bug));
        assert!(!wrong.is_empty(), "{bug} is not found");
    }
}
