//! Whom the agreement asks, when, and whom it does not.

use schema::Release;
use types::Address;

use super::agreement::*;

const OURS: Version = [1; 16];
const THEIRS: Version = [2; 16];

fn node(n: u8) -> Address {
    Address::new([127, 0, 0, n], 7000)
}

fn said(schema: Version) -> Said {
    let release = "5.0.4".to_owned();
    Said { schema: Some(schema), release, messaging: Some(12), is_member: true }
}

fn agreement() -> Agreement {
    let mut agreement = Agreement::new(0, Release::V5_0, 12);
    assert_eq!(agreement.step(0, Event::Local(OURS)), [Effect::Announce(OURS)]);
    agreement
}

fn heard(agreement: &mut Agreement, now: u64, n: u8, said: Said) -> Vec<Effect> {
    let mut effects = agreement.step(now, Event::Heard(node(n), said));
    effects.extend(agreement.step(now, Event::Up(node(n))));
    effects
}

fn pulled(effects: &[Effect]) -> Vec<Pull> {
    let pull = |effect: &Effect| match effect {
        Effect::Pull(pull) => Some(*pull),
        _ => None,
    };
    effects.iter().filter_map(pull).collect()
}

#[test]
fn a_node_that_just_started_asks_at_once_and_an_old_one_waits_for_a_push() {
    let mut new = agreement();
    let asked = pulled(&heard(&mut new, 10, 2, said(THEIRS)));
    assert_eq!(asked.len(), 1);
    assert!(!new.is_ready() && new.wants(&asked[0]));

    let mut old = agreement();
    let late = MIGRATION_DELAY + 1;
    assert_eq!(heard(&mut old, late, 2, said(THEIRS)), []);
    assert_eq!(old.step(late + MIGRATION_DELAY - 1, Event::Tick), []);
    assert_eq!(pulled(&old.clone().step(late + MIGRATION_DELAY, Event::Tick)).len(), 1);
    // the push came
    old.step(late + 5, Event::Local(THEIRS));
    assert!(old.is_ready());
    assert_eq!(old.step(late + MIGRATION_DELAY, Event::Tick), []);

    // one without a schema does not wait, however old
    let mut empty = Agreement::new(0, Release::V5_0, 12);
    empty.step(0, Event::Local(schema::Schema::empty_version()));
    assert_eq!(pulled(&heard(&mut empty, late, 2, said(THEIRS))).len(), 1);
}

#[test]
fn a_node_that_missed_a_push_asks_though_the_schema_changes_all_the_time() {
    const EVERY: u64 = 8_000;
    let mut behind = agreement();
    let (mut now, mut asked) = (2 * MIGRATION_DELAY, Vec::new());
    let until = now + MIGRATION_DELAY + EVERY;
    for number in 2.. {
        // what is pushed is a change alone, so that its own version is another each time, too
        asked.extend(pulled(&heard(&mut behind, now, 2, said([number; 16]))));
        behind.step(now, Event::Local([100 + number; 16]));
        if !asked.is_empty() {
            break;
        }
        assert!(now < until, "nobody was asked in {} ms", now - 2 * MIGRATION_DELAY);
        now += EVERY;
    }
    // it is behind no more, and waits for a push again
    behind.step(now, Event::Local([99; 16]));
    heard(&mut behind, now, 2, said([99; 16]));
    assert_eq!(pulled(&heard(&mut behind, now + EVERY, 2, said([98; 16]))), []);
}

#[test]
fn nodes_that_would_not_do_are_not_asked_and_not_pushed_to() {
    let others = [
        Said { release: "4.1.10".to_owned(), ..said(THEIRS) },
        Said { release: "50.1".to_owned(), ..said(THEIRS) },
        Said { messaging: Some(13), ..said(THEIRS) },
        Said { messaging: None, ..said(THEIRS) },
    ];
    for other in others {
        let mut agreement = agreement();
        assert_eq!(heard(&mut agreement, 10, 2, other.clone()), [], "{other:?}");
        assert_eq!(agreement.step(2 * PULL_INTERVAL, Event::Tick), [], "{other:?}");
        assert_eq!(agreement.step(20, Event::Changed), [Effect::Push(vec![])]);
        // it is known that it has another schema
        assert!(!agreement.is_ready());
    }
    // nobody waits for one that is no member; but it is pushed to
    let mut agreement = agreement();
    let joining = Said { is_member: false, ..said(THEIRS) };
    assert_eq!(heard(&mut agreement, 10, 2, joining), []);
    assert!(agreement.is_ready());
    assert_eq!(agreement.step(20, Event::Changed), [Effect::Push(vec![node(2)])]);
    // nor one that is down, until it is up again
    let asked = agreement.step(20, Event::Heard(node(3), said(THEIRS)));
    assert_eq!(asked, []);
    assert_eq!(agreement.step(20, Event::Changed), [Effect::Push(vec![node(2)])]);
    assert_eq!(pulled(&agreement.step(30, Event::Up(node(3)))).len(), 1);
    agreement.step(40, Event::Down(node(2)));
    assert_eq!(agreement.step(50, Event::Changed), [Effect::Push(vec![node(3)])]);
}

#[test]
fn what_a_dead_node_said_is_not_waited_for_by_who_takes_its_place() {
    let mut agreement = agreement();
    agreement.step(10, Event::Heard(node(2), said(THEIRS)));
    assert!(!agreement.is_ready() && agreement.is_ready_without(Some(node(2))));
    assert!(!agreement.is_ready_without(Some(node(3))));
    // who lives says it too
    heard(&mut agreement, 20, 3, said(THEIRS));
    assert!(!agreement.is_ready_without(Some(node(2))));
}

#[test]
fn no_more_than_three_are_asked_for_one_version() {
    let mut agreement = agreement();
    let mut asked = Vec::new();
    for n in 2..9 {
        asked.extend(pulled(&heard(&mut agreement, 10, n, said(THEIRS))));
    }
    assert_eq!(asked.len(), PULLS_OF_A_VERSION);
    // one more when one fails, and it is another
    let next = pulled(&agreement.step(20, Event::Ended { pull: asked[0], is_done: false }));
    assert_eq!(next.len(), 1);
    assert!(!asked.iter().any(|pull| pull.node == next[0].node));
    // none when it is here
    agreement.step(30, Event::Ended { pull: asked[1], is_done: true });
    assert!(agreement.is_ready());
    assert!(!agreement.wants(&asked[2]));
    assert_eq!(agreement.step(40, Event::Ended { pull: asked[2], is_done: false }), []);
}

#[test]
fn a_pull_that_failed_is_tried_again_after_a_while() {
    let mut agreement = agreement();
    let [first] = pulled(&heard(&mut agreement, 10, 2, said(THEIRS)))[..] else { panic!() };
    assert_eq!(agreement.step(20, Event::Ended { pull: first, is_done: false }), []);
    assert_eq!(agreement.step(20 + BACK_OFF - 1, Event::Tick), []);
    let [second] = pulled(&agreement.step(20 + BACK_OFF, Event::Tick))[..] else { panic!() };
    // the answer to the first comes after all: it is not the one that is waited for
    assert!(!agreement.wants(&first) && agreement.wants(&second));
    agreement.step(2_000, Event::Ended { pull: first, is_done: true });
    assert!(!agreement.is_ready());
    // nobody says how the second ended
    let given_up = 20 + BACK_OFF + PULL_LIMIT;
    assert_eq!(pulled(&agreement.step(given_up - 1, Event::Tick)), []);
    agreement.step(given_up, Event::Tick);
    assert!(!agreement.wants(&second));
    let third = pulled(&agreement.step(given_up + MIGRATION_DELAY, Event::Tick));
    assert_eq!(third.len(), 1);
}

#[test]
fn a_version_that_nobody_says_any_more_is_forgotten() {
    let mut agreement = agreement();
    let [pull] = pulled(&heard(&mut agreement, 10, 2, said(THEIRS)))[..] else { panic!() };
    assert_eq!(agreement.said().count(), 1);
    agreement.step(20, Event::Heard(node(2), said(OURS)));
    assert!(agreement.is_ready() && !agreement.wants(&pull));
    let says: Vec<_> = agreement.said().map(|(version, nodes)| (version, nodes.len())).collect();
    assert_eq!(says, [(OURS, 1)]);
    agreement.step(30, Event::Removed(node(2)));
    assert_eq!(agreement.said().count(), 0);
}

#[test]
fn a_version_that_was_here_once_is_asked_for_again_if_its_nodes_stay_with_it() {
    let mut agreement = agreement();
    let late = 2 * MIGRATION_DELAY;
    agreement.step(late, Event::Tick);
    assert_eq!(heard(&mut agreement, late, 2, said(OURS)), []);
    // what deletes rows of a third may be there, and not here: the versions were equal
    agreement.step(late, Event::Local(THEIRS));
    let looked = late + PULL_INTERVAL;
    assert_eq!(agreement.step(looked, Event::Tick), []);
    assert_eq!(agreement.step(looked + MIGRATION_DELAY - 1, Event::Tick), []);
    let asked = pulled(&agreement.step(looked + MIGRATION_DELAY, Event::Tick));
    assert_eq!(asked.len(), 1);
    assert!(agreement.wants(&asked[0]));
}
