//! Rings that are repaired: clients write and delete, nodes miss some of it and nobody keeps it for
//! them, an operator repairs in all forms, and machines are killed, cut off and filled at each step
//! of that. Deletions of one table are purged within the world.
//!
//! What must hold: what was acknowledged at QUORUM is read at QUORUM at any time. What was deleted
//! does not return, if it was repaired in time (`data.rs` says what in time is). Each repair ends,
//! well or not. In the end, when nothing goes wrong any more:
//!
//! - No session of an incremental repair is open, and no SSTable pends.
//! - What all replicas count as repaired is the same, unless an operator ended a session by force.
//! - A repair succeeds, and then each replica alone has all that was acknowledged, by one of them
//!   too, and all have the same; previews say so.
//! - No file is left that no table has.
//!
//! `cargo xtask campaign repair-seeds` runs them. `campaign repair-story SEED` says what happened
//! in one.

mod client;
mod data;
mod ends;
pub mod names;
mod operator;

use std::rc::Rc;
use std::time::Duration;

use env::sim::Fault;
use env::{Class, Rng, Task};

use self::client::Client;
use self::data::{Data, TABLES};
use self::ends::Ends;
use self::operator::Operator;
use super::plan::Plan;
use super::{MAX, Story};
use crate::world::Outcome;

/// Clients of a world.
const CLIENTS: usize = 3;
/// `gc_grace_seconds` of the table whose deletions are purged.
const GRACE_SECONDS: (u64, u64) = (25, 60);
/// That of the other one: longer than any world.
const LONG_GRACE: Duration = Duration::from_secs(864_000);
/// What is under way when nothing new begins or goes wrong ends within this time.
const ENDED_AFTER: Duration = Duration::from_secs(450);
/// Operations of clients that a world must have.
const OPERATIONS_MIN: u64 = 50;

/// Which repairs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    Full,
    Incremental,
    Both,
}

/// What a seed decides beside the plan.
#[derive(Clone, Copy, Debug)]
struct Terms {
    kinds: Kinds,
    /// Are sessions ended by force at nodes that do not coordinate them? Then what replicas count
    /// as repaired differs, as it does in Cassandra.
    by_force: bool,
    grace: Duration,
    compaction: &'static str,
    /// Is the last repair an incremental one?
    ends_incrementally: bool,
}

/// How tables are compacted.
const COMPACTIONS: [&str; 4] = [
    "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}",
    "{'class': 'SizeTieredCompactionStrategy'}",
    "{'class': 'LeveledCompactionStrategy'}",
    "{'class': 'UnifiedCompactionStrategy'}",
];

impl Terms {
    fn new(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x0074_6572_6d73);
        let kinds = [Kinds::Full, Kinds::Incremental, Kinds::Both, Kinds::Both];
        Self {
            kinds: kinds[rng.below(4) as usize],
            by_force: rng.one_in(6),
            grace: Duration::from_secs(rng.between(GRACE_SECONDS.0, GRACE_SECONDS.1)),
            compaction: COMPACTIONS[rng.below(4) as usize],
            ends_incrementally: rng.one_in(2),
        }
    }
}

/// Runs a seed, with a bug in the nodes if one is named.
pub fn run(seed: u64, bug: Option<&'static str>) -> Outcome {
    let mut story = Story::new(seed, bug, Plan::repair(seed));
    let result = tell(&mut story, seed, bug.is_some());
    story.outcome(seed, result.err())
}

/// Runs a seed, and says what happened.
pub fn story(seed: u64, bug: Option<&'static str>) -> (Vec<String>, Outcome) {
    let mut story = Story::new(seed, bug, Plan::repair(seed));
    story.model.be_told();
    let result = tell(&mut story, seed, bug.is_some());
    let told = story.model.story();
    (told, story.outcome(seed, result.err()))
}

fn tell(story: &mut Story, seed: u64, has_bug: bool) -> Result<(), String> {
    let terms = Terms::new(seed);
    story.world.set_fault(Fault::Loss { one_in: 50 });
    story.begin()?;
    define(story, terms)?;
    let data = Rc::new(Data::new([terms.grace, LONG_GRACE], terms.kinds != Kinds::Full));
    let tasks = spawn(story, seed, &data);
    let rng = Rng::new(seed ^ 0x6f70_6572_6174);
    let of = (&story.plan, terms);
    let mut operator = Operator::new(rng, of, &story.members, &story.model, &data);
    let end = story.world.now() + story.plan.trouble;
    while story.world.now() < end {
        operator.step(&story.world)?;
        story.model.wrong().map_err(|why| format!("{why}\n  {terms:?}"))?;
    }
    operator.close();
    let end = story.world.now() + ENDED_AFTER;
    while !operator.is_idle(&story.world) {
        operator.step(&story.world)?;
        story.model.wrong()?;
        if story.world.now() > end {
            return Err(format!("it does not end: {}", operator.said()));
        }
    }
    let ends = Ends { story, data: &data, terms };
    ends.differ()?;
    story.world.set_fault(Fault::Loss { one_in: 0 });
    story.model.is_over.set(true);
    let are_over = || tasks.iter().all(Task::is_finished);
    let over = story.world.run_until(are_over, MAX);
    over.map_err(|failure| format!("clients do not end: {}", failure.what))?;
    story.model.wrong()?;
    story.settle().agree().map_err(|why| format!("they do not agree: {why}"))?;
    ends.check().map_err(|why| format!("{why}\n  {terms:?}"))?;
    story.model.wrong()?;
    match story.model.done.get() {
        done if done < OPERATIONS_MIN && !has_bug => Err(format!("too tame: {done} operations")),
        _ => Ok(()),
    }
}

/// Makes what the clients need.
fn define(story: &Story, terms: Terms) -> Result<(), String> {
    let replication = story.plan.replication();
    let table = |(name, grace): (&str, Duration)| {
        format!(
            "CREATE TABLE ring.{name} (k int, c int, a bigint, b bigint, PRIMARY KEY (k, c)) WITH \
             gc_grace_seconds = {} AND compaction = {} AND speculative_retry = 'NEVER'",
            grace.as_secs(),
            terms.compaction
        )
    };
    let tables = TABLES.into_iter().zip([terms.grace, LONG_GRACE]).map(table);
    let keyspace = format!("CREATE KEYSPACE ring WITH replication = {replication}");
    story.define_all(std::iter::once(keyspace).chain(tables))
}

fn spawn(story: &Story, seed: u64, data: &Rc<Data>) -> Vec<Task<()>> {
    let rng = Rng::new(seed ^ 0x636c_6965_6e74);
    let clients = (0..CLIENTS).map(|_| {
        let client = Client {
            env: story.clients.clone(),
            members: Rc::clone(&story.machines),
            model: Rc::clone(&story.model),
            data: Rc::clone(data),
            rng: Rng::new(rng.next()),
        };
        story.clients.spawn_task(Class::Statement, client.run())
    });
    clients.collect()
}
