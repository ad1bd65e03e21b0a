//! Settings that hold until the next start.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use admin::{Answer, LoggerLevel, Refusal, Setting, SettingsOperator, Timeout};
use cluster::Shard;
use config::{Config, Timeouts};
use logging::{LOGGERS_MAX, SetLevel, Threshold};
use metrics::Level;

use super::{Operations, failed};
use crate::all_shards::ask_all;

/// Where a timeout of the node is kept; none: nothing that it is of is served yet.
fn place(timeouts: &mut Timeouts, timeout: Timeout) -> Option<&mut Duration> {
    Some(match timeout {
        Timeout::Read => &mut timeouts.read,
        Timeout::Range => &mut timeouts.range,
        Timeout::Write => &mut timeouts.write,
        Timeout::CounterWrite => &mut timeouts.counter_write,
        Timeout::CasContention => &mut timeouts.cas_contention,
        Timeout::Truncate => &mut timeouts.truncate,
        Timeout::Misc => &mut timeouts.other,
        Timeout::InternodeConnect => &mut timeouts.internode_connect,
        Timeout::InternodeUser => &mut timeouts.internode_user,
        Timeout::InternodeStreamingUser => return None,
    })
}

fn unserved(timeout: Timeout) -> Refusal {
    Refusal::Failed(format!("{} is not supported", timeout.config_key()))
}

impl SettingsOperator for Operations {
    async fn timeout(&self, timeout: Timeout) -> Answer<u64> {
        let mut timeouts = self.shard.timeouts();
        let kept = place(&mut timeouts, timeout).ok_or_else(|| unserved(timeout))?;
        Ok(u64::try_from(kept.as_millis()).unwrap_or(u64::MAX))
    }

    async fn set_timeout(&self, timeout: Timeout, millis: u64) -> Answer<()> {
        let mut timeouts = self.shard.timeouts();
        *place(&mut timeouts, timeout).ok_or_else(|| unserved(timeout))? =
            Duration::from_millis(millis);
        let set = move |shard: &Rc<Shard>| shard.set_timeouts(timeouts);
        ask_all(self.shard.others(), set).await.map(drop).map_err(failed)
    }

    async fn column_index_bytes(&self) -> Answer<Option<u64>> {
        Ok(self.config.column_index_size)
    }

    async fn default_replication(&self) -> Answer<u64> {
        Ok(self.shard.schema_owner().default_replication().into())
    }

    async fn set_default_replication(&self, factor: i32) -> Answer<()> {
        let refused = |text: String| Err(Refusal::BadUse(text));
        let Some(replicas) = u32::try_from(factor).ok().filter(|replicas| *replicas > 0) else {
            return refused("default_keyspace_rf cannot be less than 1".to_owned());
        };
        let config = self.shard.guardrails().current_config();
        let limit = |name: &str| config.lookup().number(name);
        let (least, most) = (
            limit("minimum_replication_factor_fail_threshold"),
            limit("maximum_replication_factor_fail_threshold"),
        );
        if least > 0 && i64::from(factor) < least {
            return refused(format!(
                "default_keyspace_rf to be set ({factor}) cannot be less than \
                 minimum_replication_factor_fail_threshold ({least})"
            ));
        }
        if most > 0 && i64::from(factor) > most {
            return refused(format!(
                "default_keyspace_rf to be set ({factor}) cannot be greater than \
                 maximum_replication_factor_fail_threshold ({most})"
            ));
        }
        self.shard.schema_owner().set_default_replication(replicas);
        Ok(())
    }

    async fn replay_batches(&self) -> Answer<()> {
        self.shard.replay_batches().await.map_err(failed)
    }

    async fn settings(&self) -> Answer<Vec<Setting>> {
        let settings = self.shard.virtual_tables().settings().into_iter();
        Ok(settings.map(|(name, value)| Setting { name, value }).collect())
    }

    async fn set_guardrails(&self, settings: &[String]) -> Answer<()> {
        let mut config = Config::clone(&self.shard.guardrails().current_config());
        let set = config.set_all(settings.iter().map(String::as_str));
        set.map_err(|refusal| Refusal::BadUse(refusal.to_string()))?;
        self.guardrails.check_disk(&config).await.map_err(Refusal::BadUse)?;
        self.guardrails.set_config(Arc::new(config)).await.map_err(failed)
    }

    async fn logging_levels(&self) -> Answer<Vec<LoggerLevel>> {
        let shown = self.journal.levels().borrow().shown().into_iter();
        Ok(shown.map(|(logger, level)| LoggerLevel { logger, level: level.to_owned() }).collect())
    }

    async fn set_logging_level(&self, target: &str, level: &str) -> Answer<Vec<String>> {
        let set = self.journal.levels().borrow_mut().set(target, level);
        let unheard = match set {
            SetLevel::TooMany => {
                return Err(Refusal::Failed(format!(
                    "{LOGGERS_MAX} loggers have a level of their own already: reset them with \
                     nodetool setlogginglevel"
                )));
            }
            SetLevel::Set(_) => Vec::new(),
            SetLevel::Nothing(names) => names,
        };
        if !level.is_empty() {
            // Cassandra's words
            let set = Threshold::of(level).name();
            let text = format!(
                "set log level to {set} for classes under '{target}' (if the level doesn't look \
                 like '{level}' then the logger couldn't parse '{level}')"
            );
            self.journal.say(Level::Info, text);
        }
        Ok(unheard)
    }

    async fn trace_probability(&self) -> Answer<f64> {
        Ok(self.shard.tracer().probability())
    }

    async fn set_trace_probability(&self, share: f64) -> Answer<()> {
        let set = move |shard: &Rc<Shard>| shard.tracer().set_probability(share);
        ask_all(self.shard.others(), set).await.map(drop).map_err(failed)
    }
}
