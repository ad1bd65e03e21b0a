//! Guardrails that the node itself keeps: what is written to SSTables, and how full the disk is
//! (`service.disk.usage.DiskUsageMonitor`).

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{DISK_NOTICES, DiskUsage, Shard, write_limits};
use config::Config;
use env::{Env, Instant};
use metrics::Level;
use storage::shards::Stopping;
use storage::{Engine, Finding};

use crate::all_shards::ask_all;
use crate::context::Context;
use crate::journal::Journal;

/// How often the disk is looked at (`cassandra.disk_usage.monitor_interval_ms`).
const LOOK: Duration = Duration::from_secs(30);
/// Shares of the disk are rounded up to this part of it (Cassandra's five digits).
const PARTS: u128 = 100_000;
/// Parts in a percent.
const PERCENT: u128 = PARTS / 100;

/// Thresholds of the disk, in percent; what is not above 0 is off.
struct DiskLimits {
    warn: i64,
    fail: i64,
    /// Bytes that data may take at the most.
    most: Option<u64>,
}

impl DiskLimits {
    fn of(config: &Config) -> Self {
        let look = config.lookup();
        let percent = |side| look.number(&format!("data_disk_usage_percentage_{side}_threshold"));
        let most = u64::try_from(look.number("data_disk_usage_max_disk_size")).unwrap_or(0);
        Self { warn: percent("warn"), fail: percent("fail"), most: (most > 0).then_some(most) }
    }

    fn usage(&self, percent: i64) -> DiskUsage {
        match () {
            () if self.fail > 0 && percent > self.fail => DiskUsage::Full,
            () if self.warn > 0 && percent > self.warn => DiskUsage::Stuffed,
            () if self.fail > 0 || self.warn > 0 => DiskUsage::Spacious,
            () => DiskUsage::NotAvailable,
        }
    }
}

/// The share that data and what waits in memory take of what data may take, in percent, rounded up.
fn percent(data: u64, in_memory: u64, free: u64, most: Option<u64>) -> i64 {
    let total = u128::from(data) + u128::from(free);
    let total = most.map_or(total, |most| total.min(most.into())).max(1);
    let used = u128::from(data) + u128::from(in_memory);
    let share = (used * PARTS).div_ceil(total);
    i64::try_from(share.div_ceil(PERCENT)).unwrap_or(i64::MAX)
}

/// Tells the log of partitions and collections that are too large when they are written; on the
/// first shard.
pub(crate) fn watch_writes(engine: &Engine, journal: &Rc<Journal>, config: &Config) {
    let journal = Rc::clone(journal);
    let tell = move |finding: &Finding<'_>| {
        if let Some(text) = cluster::oversized(finding) {
            journal.say_seldom(if finding.is_failure { Level::Error } else { Level::Warn }, text);
        }
    };
    engine.watch_writes(write_limits(config), Rc::new(tell));
}

/// Goes by a configuration that the operator may change, and by how full the disk is; on the first
/// shard.
pub(crate) struct NodeGuardrails {
    env: Env,
    config: Arc<Config>,
    shard: Rc<Shard>,
    journal: Rc<Journal>,
}

impl NodeGuardrails {
    pub fn new(context: &Context, shard: &Rc<Shard>) -> Rc<Self> {
        Rc::new(Self {
            env: context.env.clone(),
            config: Arc::clone(&context.config),
            shard: Rc::clone(shard),
            journal: Rc::clone(&context.journal),
        })
    }

    /// Goes on under a configuration that the operator changed, on all shards.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn set_config(&self, config: Arc<Config>) -> Result<(), Stopping> {
        watch_writes(self.shard.engine(), &self.journal, &config);
        let set = move |shard: &Rc<Shard>| shard.guardrails().set_config(&config);
        ask_all(self.shard.others(), set).await.map(drop)
    }

    /// Is the disk as large as data may grow? Else why not, in Cassandra's words.
    ///
    /// # Errors
    /// If it is not, or does not say.
    pub async fn check_disk(&self, config: &Config) -> Result<(), String> {
        let (Some(most), Some(directory)) =
            (DiskLimits::of(config).most, config.data_file_directories.first())
        else {
            return Ok(());
        };
        let (total, _) = self.env.disk_space(directory).await.map_err(|error| error.to_string())?;
        match total < most {
            true => Err(format!(
                "Invalid value for data_disk_usage_max_disk_size: {most}B specified, but only {total} bytes are actually available on disk"
            )),
            false => Ok(()),
        }
    }

    /// Looks at the disk now and then, and lets all shards know.
    pub async fn watch_disk(self: Rc<Self>) {
        let mut told: [Option<Instant>; 2] = [None; 2];
        let mut before = DiskUsage::NotAvailable;
        loop {
            let limits = DiskLimits::of(&self.shard.guardrails().current_config());
            let usage = match limits.warn > 0 || limits.fail > 0 {
                true => self.look_at_disk(&limits, &mut told).await.unwrap_or(before),
                false => DiskUsage::NotAvailable,
            };
            if usage != before {
                before = usage;
                let set = move |shard: &Rc<Shard>| shard.guardrails().set_disk_usage(usage);
                self.shard.others().send_to_all(set);
            }
            self.env.sleep(LOOK).await;
        }
    }

    /// How full the disk is; none if it does not say.
    async fn look_at_disk(
        self: &Rc<Self>,
        limits: &DiskLimits,
        told: &mut [Option<Instant>; 2],
    ) -> Option<DiskUsage> {
        let directory = self.config.data_file_directories.first()?;
        let (_, free) = self.env.disk_space(directory).await.ok()?;
        let bytes = |shard: &Rc<Shard>| shard.engine().memtable_bytes() as u64;
        let in_memory = ask_all(self.shard.others(), bytes).await.ok()?.into_iter().sum();
        let percent = percent(self.shard.engine().disk_bytes(), in_memory, free, limits.most);
        let usage = limits.usage(percent);
        let name = usage.name();
        let (level, text) = match usage {
            DiskUsage::Full => (
                Level::Error,
                format!(
                    "Local data disk usage {percent}%({name}) exceeds failure threshold of {}%, will stop accepting writes",
                    limits.fail
                ),
            ),
            DiskUsage::Stuffed => (
                Level::Warn,
                format!(
                    "Local data disk usage {percent}%({name}) exceeds warning threshold of {}%",
                    limits.warn
                ),
            ),
            _ => return Some(usage),
        };
        let [warned, failed] = told;
        let told = if usage == DiskUsage::Full { failed } else { warned };
        let now = self.env.now();
        if told.is_none_or(|at| now.since(at) >= DISK_NOTICES) {
            *told = Some(now);
            self.journal.say(level, cluster::violation("local_data_disk_usage", None, &text));
        }
        Some(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_up() {
        assert_eq!(percent(0, 0, 100, None), 0);
        assert_eq!(percent(0, 1, 1_000_000, None), 1);
        assert_eq!(percent(50, 0, 50, None), 50);
        assert_eq!(percent(50, 1, 50, None), 51);
        assert_eq!(percent(500, 0, 10_000, Some(1000)), 50);
        assert_eq!(percent(0, 0, 0, None), 0);
    }

    #[test]
    fn failure_is_looked_at_before_warning() {
        let limits = DiskLimits { warn: 40, fail: 60, most: None };
        let usages = [40, 41, 60, 61].map(|percent| limits.usage(percent));
        use DiskUsage::{Full, Spacious, Stuffed};
        assert_eq!(usages, [Spacious, Stuffed, Stuffed, Full]);
        let off = DiskLimits { warn: -1, fail: 0, most: None };
        assert_eq!(off.usage(100), DiskUsage::NotAvailable);
    }
}
