//! Samples of partitions for the operator: now, or again and again into the log
//! (`metrics.SamplingManager`).
//!
//! Shards count for themselves. This begins and ends it on all of them, and puts together what they
//! found. At most one sampling at a time has a sampler of a table.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use admin::{Answer, Refusal, Sample, SampleOrder, Sampled, SampledTables, TableName};
use cluster::Shard;
use env::Class;
use metrics::Level;
use schema::{Schema, TableId};
use storage::Sampler;

use crate::all_shards::ask_all;
use crate::journal::Journal;

/// Is a scheduled sampling to go on?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schedule {
    Repeats,
    /// Its present round is the last.
    Ends,
}

/// What is sampled now; on the first shard.
pub(crate) struct Samplings {
    shard: Rc<Shard>,
    journal: Rc<Journal>,
    busy: RefCell<Vec<(TableId, Sampler)>>,
    schedules: RefCell<BTreeMap<SampledTables, Schedule>>,
}

/// The engine's name for a sampler.
fn sampler(of: admin::Sampler) -> Sampler {
    match of {
        admin::Sampler::Reads => Sampler::Reads,
        admin::Sampler::Writes => Sampler::Writes,
        admin::Sampler::LocalReadTime => Sampler::LocalReadTime,
        admin::Sampler::ReadRowCount => Sampler::ReadRowCount,
        admin::Sampler::ReadTombstoneCount => Sampler::ReadTombstoneCount,
        admin::Sampler::ReadSstableCount => Sampler::ReadSSTableCount,
        admin::Sampler::WriteSize => Sampler::WriteSize,
        admin::Sampler::CasContentions => Sampler::CasContentions,
    }
}

/// The tables with files that are meant; `unknown` is what is said of a table that is not there.
fn tables_of(
    schema: &Schema,
    of: &SampledTables,
    unknown: impl FnOnce(TableName) -> Refusal,
) -> Answer<Vec<TableId>> {
    let Some(keyspace) = &of.keyspace else {
        let keyspaces = schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual);
        let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
        return Ok(tables.map(|table| table.id).collect());
    };
    let found = schema.keyspace(keyspace).filter(|keyspace| !keyspace.is_virtual);
    let table = found.zip(of.table.as_ref()).map(|(found, name)| found.tables.get(name));
    match (found, table) {
        (_, Some(Some(table))) => Ok(vec![table.id]),
        (Some(found), None) => Ok(found.tables.values().map(|table| table.id).collect()),
        _ => {
            let (keyspace, table) = (keyspace.clone(), of.table.clone().unwrap_or_default());
            Err(unknown(TableName { keyspace, table }))
        }
    }
}

fn unknown_keyspace(name: &str) -> Refusal {
    Refusal::Failed(format!("Unknown keyspace {name}"))
}

/// What a sampling has for itself: it is free again when the verb ends, or nobody waits for it.
struct Busy<'a> {
    all: &'a RefCell<Vec<(TableId, Sampler)>>,
    own: &'a [(TableId, Sampler)],
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.all.borrow_mut().retain(|one| !self.own.contains(one));
    }
}

impl Samplings {
    pub fn new(shard: &Rc<Shard>, journal: &Rc<Journal>) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            journal: Rc::clone(journal),
            busy: RefCell::default(),
            schedules: RefCell::default(),
        })
    }

    /// Samples for the time that is asked for, and tells what was found.
    pub async fn sample(&self, order: &SampleOrder) -> Answer<Vec<Sampled>> {
        let schema = self.shard.engine().schema();
        let tables = tables_of(&schema, &order.of, |name| match name.table.is_empty() {
            true => unknown_keyspace(&name.keyspace),
            false => Refusal::UnknownTable(name),
        })?;
        self.sample_tables(order, &tables).await
    }

    async fn sample_tables(&self, order: &SampleOrder, tables: &[TableId]) -> Answer<Vec<Sampled>> {
        let samplers: Vec<Sampler> = order.samplers.iter().copied().map(sampler).collect();
        let mut wanted: Vec<(TableId, Sampler)> = Vec::new();
        for table in tables {
            wanted.extend(samplers.iter().map(|sampler| (*table, *sampler)));
        }
        if wanted.iter().any(|one| self.busy.borrow().contains(one)) {
            return Err(Refusal::Failed("Sampling already in progress".to_owned()));
        }
        self.busy.borrow_mut().extend(&wanted);
        let _busy = Busy { all: &self.busy, own: &wanted };
        self.run(order, tables.to_vec(), samplers).await
    }

    async fn run(
        &self,
        order: &SampleOrder,
        tables: Vec<TableId>,
        samplers: Vec<Sampler>,
    ) -> Answer<Vec<Sampled>> {
        let stopping = |error: storage::shards::Stopping| Refusal::Failed(error.to_string());
        let (capacity, most) = (order.capacity as usize, order.top as usize);
        let duration = Duration::from_millis(order.duration_millis.into());
        let others = self.shard.others();
        let of = (tables.clone(), samplers.clone());
        ask_all(others, move |there| {
            there.engine().begin_sampling(&of.0, &of.1, capacity, duration);
        })
        .await
        .map_err(stopping)?;
        self.shard.engine().env().sleep(duration).await;
        let mut found = Vec::new();
        // table by table: what a shard has at once is not much
        for table in tables {
            let samplers = samplers.clone();
            let end =
                move |there: &Rc<Shard>| there.engine().end_sampling(&[table], &samplers, most);
            found.extend(ask_all(others, end).await.map_err(stopping)?.into_iter().flatten());
        }
        Ok(self.shown(order, found))
    }

    /// What shards found, by sampler.
    fn shown(
        &self,
        order: &SampleOrder,
        found: Vec<(TableId, Sampler, Vec<storage::Sampled>)>,
    ) -> Vec<Sampled> {
        let schema = self.shard.engine().schema();
        let is_of_one = order.of.keyspace.is_some() && order.of.table.is_some();
        let one = |of: admin::Sampler| {
            let sampler = sampler(of);
            let mut samples = Vec::new();
            for (id, _, items) in found.iter().filter(|(_, by, _)| *by == sampler) {
                let Some(table) = schema.table_by_id(id) else { continue };
                let name = format!("{}.{}", table.keyspace, table.name);
                samples.extend(items.iter().map(|of| Sample {
                    table: name.clone(),
                    value: match sampler {
                        Sampler::LocalReadTime => String::from_utf8_lossy(&of.item).into_owned(),
                        _ => table.key_text(&of.item),
                    },
                    count: of.count,
                    error: of.error,
                }));
            }
            samples.sort_by_key(|sample| std::cmp::Reverse(sample.count));
            // of one table Cassandra shows one more of those that are not of frequency
            let more = usize::from(is_of_one && !sampler.is_of_frequency());
            samples.truncate(order.top as usize + more);
            Sampled { sampler: of, samples }
        };
        order.samplers.iter().copied().map(one).collect()
    }

    /// Samples again and again, into the log; false if something like it runs.
    pub fn schedule(self: &Rc<Self>, order: SampleOrder, interval_millis: u32) -> Answer<bool> {
        if !self.may_schedule(&order.of) {
            return Ok(false);
        }
        let schema = self.shard.engine().schema();
        let tables = tables_of(&schema, &order.of, |name| match schema.keyspace(&name.keyspace) {
            Some(_) => Refusal::BadUse(format!(
                "Unknown keyspace/cf pair ({}.{})",
                name.keyspace, name.table
            )),
            None => unknown_keyspace(&name.keyspace),
        })?;
        self.schedules.borrow_mut().insert(order.of.clone(), Schedule::Repeats);
        let this = Rc::clone(self);
        let pause = interval_millis.saturating_sub(order.duration_millis);
        self.shard.engine().env().spawn(Class::Background, async move {
            this.repeat(order, tables, Duration::from_millis(pause.into())).await;
        });
        Ok(true)
    }

    /// As `SamplingManager.canSchedule`: not all while there is one, and not one while all are.
    fn may_schedule(&self, of: &SampledTables) -> bool {
        let schedules = self.schedules.borrow();
        let all = SampledTables::default();
        let of_keyspace = SampledTables { keyspace: of.keyspace.clone(), table: None };
        !(schedules.contains_key(&all)
            || (*of == all && !schedules.is_empty())
            || schedules.contains_key(of)
            || schedules.contains_key(&of_keyspace))
    }

    async fn repeat(&self, order: SampleOrder, tables: Vec<TableId>, pause: Duration) {
        let name = {
            let part = |name: &Option<String>| name.clone().unwrap_or_else(|| "*".to_owned());
            format!("{}.{}", part(&order.of.keyspace), part(&order.of.table))
        };
        loop {
            let found = self.sample_tables(&order, &tables).await;
            self.shard.engine().env().sleep(pause).await;
            match found {
                Ok(found) => {
                    let text = admin::samples_text(&found);
                    let text = format!("Sampled {name} for {} ms\n{text}", order.duration_millis);
                    self.journal.say(Level::Info, text.trim_end().to_owned());
                }
                Err(error) => {
                    let text = format!("did not sample {name}, and tries again: {error}");
                    self.journal.say(Level::Warn, text);
                }
            }
            if self.schedules.borrow().get(&order.of) != Some(&Schedule::Repeats) {
                break;
            }
        }
        self.schedules.borrow_mut().remove(&order.of);
        self.journal.say(Level::Info, format!("stopped sampling {name}"));
    }

    /// Ends a scheduled sampling after its present round; false if there is none. Of all tables:
    /// all that there are.
    pub fn stop(&self, of: &SampledTables) -> bool {
        let mut schedules = self.schedules.borrow_mut();
        if *of == SampledTables::default() {
            schedules.values_mut().for_each(|schedule| *schedule = Schedule::Ends);
            return true;
        }
        match schedules.get_mut(of) {
            Some(schedule) => std::mem::replace(schedule, Schedule::Ends) == Schedule::Repeats,
            None => false,
        }
    }

    /// What is scheduled.
    pub fn scheduled(&self) -> Vec<SampledTables> {
        self.schedules.borrow().keys().cloned().collect()
    }
}
