//! Verbs carried out: each asks the [`Operator`]'s traits of its domain for a value.

mod caches;
mod compaction;
mod hints;
mod network;
mod node;
mod ring;
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

/// Carries out a verb.
pub async fn ask<O: Operator>(env: &Env, operator: &O, verb: Verb) -> Outcome {
    let answer = match verb {
        Verb::Caches(verb) => caches::ask(operator, verb).await,
        Verb::Compaction(verb) => compaction::ask(operator, verb).await,
        Verb::Hints(verb) => hints::ask(operator, verb).await,
        Verb::Network(verb) => network::ask(operator, verb).await,
        Verb::Node(verb) => node::ask(operator, verb).await,
        Verb::Ring(verb) => return ring::ask(operator, verb).await,
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
            Ok(shown) => Self { shown, refusal: None },
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
