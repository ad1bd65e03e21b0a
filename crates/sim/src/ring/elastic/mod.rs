//! Rings that change: while clients write and read and others change the schema, an operator adds,
//! removes, replaces and moves nodes, and their machines are killed, cut off and filled at any
//! moment of that.
//!
//! What must hold (`GUARANTEES.md`, "Nodes that join, leave and move"): what was acknowledged at
//! QUORUM is read at QUORUM at any time, and in the end is on so many replicas that each quorum
//! has it. Of operations that exclude each other one comes to its end. Once nothing goes wrong any
//! more the operator brings all that was begun to an end, and all nodes see one ring.
//!
//! In a part of the worlds no machine fails but those that die for good: there each replica must
//! have all, not each quorum alone. (Not where a node took its own place again: what was written
//! meanwhile reaches it as hints, and whoever fetched from it before lacks that.)
//!
//! What may be lost, and so is not asked for:
//!
//! - What only a node had that died for good. So no node dies for good where there is one replica.
//! - What a dead node and one that was down while the dead one's place was taken had alone, of
//!   three, is not read at QUORUM until the operator has mended the replicas, which it does by
//!   reading at ALL; and so is what a node had that was assassinated. `Model::is_lax` says when.
//! - Additions to a counter by a node that takes its own place again in that case: the ring may
//!   hold of them what others had.
//! - What was read and never acknowledged, where there is one replica: the old one may have shown
//!   what the new one never got, so that its write failed. There is no read repair with one.
//! - A batch that was not acknowledged and is torn, where a node died for good: it may have kept it
//!   (`GUARANTEES.md` says so of single machines).
//!
//! `cargo xtask campaign elastic-seeds` runs them. `campaign elastic-story SEED` says what happened
//! in one.

mod kind;
mod operator;
mod work;

use std::rc::Rc;
use std::time::Duration;

use env::Rng;
use env::sim::Fault;

use self::operator::Operator;
use super::plan::Plan;
use super::{Crowd, MAX, QUIET, Story};
use crate::world::Outcome;

/// Between two looks of the operator, in milliseconds.
const LOOK_MILLIS: (u64, u64) = (50, 400);
/// What is under way when nothing new begins or goes wrong ends within this time.
const ENDED_AFTER: Duration = Duration::from_secs(400);
/// Operations of clients that a world must have.
const OPERATIONS_MIN: u64 = 50;
/// Few, as most of a world's time goes by while news spread.
const CROWD: Crowd = Crowd { clients: 3, think_millis: (50, 700), definers: 1 };

/// Runs a seed, with a bug in the nodes if one is named.
pub fn run(seed: u64, bug: Option<&'static str>) -> Outcome {
    let mut story = Story::new(seed, bug, Plan::elastic(seed));
    let result = tell(&mut story, seed, bug.is_some());
    story.outcome(seed, result.err())
}

/// Runs a seed, and says what happened.
pub fn story(seed: u64, bug: Option<&'static str>) -> (Vec<String>, Outcome) {
    let mut story = Story::new(seed, bug, Plan::elastic(seed));
    story.model.be_told();
    let result = tell(&mut story, seed, bug.is_some());
    let told = story.model.story();
    (told, story.outcome(seed, result.err()))
}

fn tell(story: &mut Story, seed: u64, has_bug: bool) -> Result<(), String> {
    story.world.set_fault(Fault::Loss { one_in: 50 });
    story.begin()?;
    story.define()?;
    story.model.shows_for_now.set(story.plan.replicas == [1]);
    let of = Rc::clone(&story.machines);
    let tasks = story.spawn(seed, CROWD);
    let rng = Rng::new(seed ^ 0x6f70_6572_6174);
    let mut operator = Operator::new(rng, &story.plan, &of, &story.model, &story.clients);
    let look = |story: &Story, operator: &mut Operator| {
        operator.step(&story.world)?;
        let look = story.world.rng().between(LOOK_MILLIS.0, LOOK_MILLIS.1);
        story.run_for(Duration::from_millis(look))?;
        story.model.wrong()
    };
    let end = story.world.now() + story.plan.trouble;
    while story.world.now() < end {
        look(story, &mut operator)?;
    }
    operator.close();
    let end = story.world.now() + ENDED_AFTER;
    while !operator.is_idle(&story.world) {
        look(story, &mut operator)?;
        if story.world.now() > end {
            return Err(format!("it does not end: {}", operator.said(&story.world)));
        }
    }
    story.members = Rc::new(operator.ring());
    story.world.set_fault(Fault::Loss { one_in: 0 });
    story.model.is_quiet.set(true);
    story.run_for(QUIET)?;
    story.model.is_over.set(true);
    let are_over = || tasks.iter().all(env::Task::is_finished);
    let over = story.world.run_until(are_over, MAX);
    over.map_err(|failure| format!("clients do not end: {}", failure.what))?;
    story.model.wrong()?;
    let settle = story.settle();
    settle.agree().map_err(|why| format!("they do not agree: {why}"))?;
    operator.clean_up(&story.world)?;
    settle.agree().map_err(|why| format!("they do not agree after a cleanup: {why}"))?;
    if !story.plan.is_harmed && !operator.has_taken_own_place() {
        settle.each_replica_has_all()?;
    }
    settle.each_quorum_has_all()?;
    settle.has_all_at_all(!operator.has_lost_any())?;
    story.model.wrong()?;
    match story.model.done.get() {
        done if done < OPERATIONS_MIN && !has_bug => Err(format!("too tame: {done} operations")),
        _ => Ok(()),
    }
}
