//! Caches of all shards: what they hold, and how often they are asked.

use std::cell::Cell;
use std::rc::Rc;

use storage::shards::{Remote, Stopping};
use storage::{CacheKind, CacheStats, Engine};

use crate::all_shards::ask_all;

/// How often a cache is asked, and hits, a second: averaged over about a minute.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheRates {
    seen: (u64, u64),
    pub requests: f64,
    pub hits: f64,
}

impl CacheRates {
    /// What a second weighs in an average over a minute.
    const SECOND: f64 = 1.0 / 60.0;

    /// Another second has gone, after which there were so many requests and hits in all.
    fn tick(self, requests: u64, hits: u64) -> Self {
        let towards = |rate: f64, now: u64, before: u64| {
            rate + (now.saturating_sub(before) as f64 - rate) * Self::SECOND
        };
        Self {
            seen: (requests, hits),
            requests: towards(self.requests, requests, self.seen.0),
            hits: towards(self.hits, hits, self.seen.1),
        }
    }
}

/// The caches of one shard, and by way of the others those of the node.
pub(crate) struct Caches {
    engine: Rc<Engine>,
    others: Remote<Caches>,
    rates: Cell<[CacheRates; CacheKind::ALL.len()]>,
}

impl Caches {
    pub fn new(engine: &Rc<Engine>, others: Remote<Self>) -> Rc<Self> {
        Rc::new(Self { engine: Rc::clone(engine), others, rates: Cell::default() })
    }

    /// A second has gone.
    pub fn tick(&self) {
        let mut rates = self.rates.get();
        for (rates, kind) in rates.iter_mut().zip(CacheKind::ALL) {
            let stats = self.engine.caches().stats(kind);
            *rates = rates.tick(stats.requests(), stats.hits);
        }
        self.rates.set(rates);
    }

    /// What a cache of all shards holds and did, and how often it is asked.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn of_all(&self, kind: CacheKind) -> Result<(CacheStats, CacheRates), Stopping> {
        let place = CacheKind::ALL.iter().position(|it| *it == kind);
        let look = move |there: &Rc<Self>| {
            let rates = place.and_then(|place| there.rates.get().get(place).copied());
            (there.engine.caches().stats(kind), rates.unwrap_or_default())
        };
        let mut all = (CacheStats::default(), CacheRates::default());
        for (stats, rates) in ask_all(&self.others, look).await? {
            all.0 += stats;
            all.1.requests += rates.requests;
            all.1.hits += rates.hits;
        }
        Ok(all)
    }

    /// Empties a cache on all shards.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn clear(&self, kind: CacheKind) -> Result<(), Stopping> {
        let clear = move |there: &Rc<Self>| there.engine.caches().clear(kind);
        ask_all(&self.others, clear).await.map(drop)
    }

    /// Lets a cache have so many bytes on all shards together.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn set_limit(&self, kind: CacheKind, bytes: u64) -> Result<(), Stopping> {
        let set = move |there: &Rc<Self>| there.engine.caches().set_limit(kind, bytes);
        ask_all(&self.others, set).await.map(drop)
    }
}
