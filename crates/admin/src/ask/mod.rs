//! Verbs carried out: each asks the [`Operator`]'s traits of its domain for a value.

mod access;
mod caches;
mod compaction;
mod hints;
mod network;
mod node;
mod repair;
mod request_logs;
mod ring;
mod samples;
mod settings;
mod snapshots;
mod sstables;
mod tables;

use env::Env;

use crate::model::{Outcome, Refusal, Shown};
use crate::nodetool::{Selection, Verb};
use crate::operator::{Answer, Operator, TablesOperator};

const MICROS_PER_MILLI: i64 = 1000;
const MEBIBYTE: u64 = 1 << 20;

/// Somebody who is shown what there is to see of a verb while it runs.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait Watcher {
    /// Shows the next part; false if nobody watches any more.
    async fn show(&mut self, part: Shown) -> bool;
}

/// Carries out a verb; all that there is to see of it is in the outcome.
pub async fn ask<O: Operator>(env: &Env, operator: &O, verb: Verb) -> Outcome {
    let mut seen = Seen(None);
    let outcome = ask_watched(env, operator, verb, &mut seen).await;
    match seen.0 {
        Some(shown) => Outcome { shown: Some(shown), ..outcome },
        None => outcome,
    }
}

/// Parts, put together.
struct Seen(Option<Shown>);

impl Watcher for Seen {
    async fn show(&mut self, part: Shown) -> bool {
        match &mut self.0 {
            Some(shown) => shown.join(part),
            none => *none = Some(part),
        }
        true
    }
}

/// Carries out a verb; of one that takes long, `watcher` sees parts before the outcome.
pub async fn ask_watched<O: Operator>(
    env: &Env,
    operator: &O,
    verb: Verb,
    watcher: &mut impl Watcher,
) -> Outcome {
    let answer = match verb {
        Verb::Access(verb) => access::ask(operator, verb).await,
        Verb::Caches(verb) => caches::ask(operator, verb).await,
        Verb::Compaction(verb) => compaction::ask(operator, verb).await,
        Verb::Hints(verb) => hints::ask(operator, verb).await,
        Verb::Network(verb) => network::ask(operator, verb).await,
        Verb::Node(verb) => node::ask(operator, verb).await,
        Verb::Repair(verb) => return repair::ask(env, operator, verb, watcher).await,
        Verb::RequestLogs(verb) => request_logs::ask(operator, verb).await,
        Verb::Ring(verb) => return ring::ask(operator, verb).await,
        Verb::Samples(verb) => samples::ask(operator, verb).await,
        Verb::Settings(verb) => settings::ask(operator, verb).await,
        Verb::Snapshots(verb) => return snapshots::ask(env, operator, verb).await,
        Verb::SSTables(verb) => sstables::ask(operator, verb).await,
        Verb::Tables(verb) => tables::ask(env, operator, verb).await,
    };
    answer.into()
}

impl From<Answer<Option<Shown>>> for Outcome {
    fn from(answer: Answer<Option<Shown>>) -> Self {
        match answer {
            Ok(shown) => Self { shown, refusal: None, has_more: false },
            Err(refusal) => Self::refused(refusal),
        }
    }
}

/// The keyspaces that a selection means.
async fn keyspaces(operator: &impl TablesOperator, selection: &Selection) -> Answer<Vec<String>> {
    let all = operator.keyspaces().await?.into_iter().map(|keyspace| keyspace.keyspace);
    let Some(wanted) = &selection.keyspace else { return Ok(all.collect()) };
    match all.into_iter().find(|keyspace| keyspace == wanted) {
        Some(keyspace) => Ok(vec![keyspace]),
        None => Err(Refusal::BadUse(format!("Keyspace [{wanted}] does not exist."))),
    }
}
