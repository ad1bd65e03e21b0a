//! A node on an image: started, read, written to, and started once more.

use std::time::Duration;

use env::DiskModel;
use env::sim::WorldOptions;

use super::operated::Operated;
use super::snapshots::check_tables;
use super::{Cut, Place};
use crate::engine_node::{Door, Order};
use crate::history::History;
use crate::operation::TABLES;
use crate::plan::{End, Life, Plan};
use crate::world::Run;

/// Operations of clients on a node that was started on an image.
const OPERATIONS: u64 = 30;
/// How much later than the cut the node starts, in microseconds: nobody's clock steps back.
const LATER_MICROS: i64 = 1_000_000;

/// A disk after a power cut, and what is known of what it holds.
pub struct Image {
    pub place: Place,
    pub cut: Cut,
    pub disk: DiskModel,
    /// What is wrong with its snapshots, if anything.
    pub snapshots: Result<(), String>,
    /// What the cut did.
    pub left: env::Cut,
    pub history: History,
    pub acknowledged: usize,
    pub next_value: u64,
    pub unix_micros: i64,
    pub plan: Plan,
}

/// Starts a node on an image, in a world of its own.
pub fn recover(seed: u64, image: Image, bug: Option<&'static str>) -> Result<(), String> {
    let Image { disk, snapshots, history, next_value, unix_micros, mut plan, .. } = image;
    snapshots?;
    let shards = plan.lives.get((seed % 3) as usize).map_or(1, |life| life.shards);
    plan.lives = vec![Life {
        shards,
        until: OPERATIONS,
        end: End::PowerCut,
        linger: Duration::from_micros(seed % 10_000),
        bad_syncs: false,
        stumble: None,
    }];
    let unix_micros = unix_micros + LATER_MICROS;
    let options = WorldOptions { unix_micros, ..WorldOptions::default() };
    let mut run = Run::<Door, Operated>::new(seed, bug, options, plan);
    run.world.disk(run.node, |empty| *empty = disk);
    run.load.shared.go_on(history, next_value);
    let all = |order: fn(u8) -> Order| (0..TABLES).map(order).collect::<Vec<_>>();
    run.load.duties.replace([all(Order::Flush), all(Order::Compact)].concat());
    let lived = run.lives().and_then(|()| {
        let checked = run.world.disk(run.node, |disk| check_tables(disk));
        checked.unwrap_or(Ok(()))
    });
    let outcome = run.outcome(lived.err());
    match outcome.wrong {
        Some(wrong) => Err(wrong),
        None => Ok(()),
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({:?} {})", self.cut, self.place)
    }
}
