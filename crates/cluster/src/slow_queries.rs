//! Reads of clients that took longer than `slow_query_log_timeout`: the log has them, without their
//! values, together and at most every five seconds a shard (`MonitoringTask`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cql::Plan;
use env::{Class, Instant};

use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// How long reads are gathered before the log has them
/// (`cassandra.monitoring_report_interval_ms`).
const GATHER: Duration = Duration::from_secs(5);
/// Different statements that are told of at a time (`cassandra.monitoring_max_operations`).
const STATEMENTS_MAX: usize = 50;
/// Bytes of a statement that are told.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// What slow reads by one statement took.
#[derive(Clone, Copy, Debug)]
struct Took {
    times: u32,
    all: Duration,
    least: Duration,
    most: Duration,
}

/// The slow reads of a shard.
pub(crate) struct SlowQueries {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    /// None where no read is slow.
    limit: Option<Duration>,
    gathered: RefCell<BTreeMap<String, Took>>,
    /// Those by further statements.
    others: Cell<u32>,
    is_gathering: Cell<bool>,
}

impl SlowQueries {
    pub fn new(shard: &Rc<ShardContext>, peers: &Rc<Peers>) -> Rc<Self> {
        let nanos = shard.config.lookup().number("slow_query_log_timeout");
        let limit = u64::try_from(nanos).ok().filter(|nanos| *nanos > 0);
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            limit: limit.map(Duration::from_nanos),
            gathered: RefCell::default(),
            others: Cell::default(),
            is_gathering: Cell::default(),
        })
    }

    /// Now, if that is a read and reads are watched.
    pub fn begin(&self, plan: &Plan) -> Option<Instant> {
        let is_watched = self.limit.is_some() && matches!(plan, Plan::Select(_));
        is_watched.then(|| self.shard.env.now())
    }

    /// A request that began so has ended.
    pub fn ended(self: &Rc<Self>, began: Option<Instant>, keyspace: Option<&str>, text: &str) {
        let (Some(began), Some(limit)) = (began, self.limit) else { return };
        let took = self.shard.env.now().since(began);
        if took > limit {
            self.gather(took, keyspace, text);
        }
    }

    fn gather(self: &Rc<Self>, took: Duration, keyspace: Option<&str>, text: &str) {
        let mut text = cql::without_values(text);
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        let text = match keyspace {
            Some(keyspace) => format!("<{text}> in {keyspace}"),
            None => format!("<{text}>"),
        };
        let mut gathered = self.gathered.borrow_mut();
        let is_full = gathered.len() >= STATEMENTS_MAX;
        match gathered.get_mut(&text) {
            Some(known) => known.add(took),
            None if is_full => self.others.set(self.others.get().saturating_add(1)),
            None => {
                let first = Took { times: 1, all: took, least: took, most: took };
                gathered.insert(text, first);
            }
        }
        if !self.is_gathering.replace(true) {
            let this = Rc::clone(self);
            self.shard.env.spawn(Class::Background, async move {
                this.shard.env.sleep(GATHER).await;
                this.tell();
            });
        }
    }

    fn tell(&self) {
        self.is_gathering.set(false);
        let (gathered, others) = (self.gathered.take(), self.others.take());
        let Some(limit) = self.limit else { return };
        let count = gathered.values().fold(others, |sum, took| sum.saturating_add(took.times));
        let seconds = GATHER.as_secs();
        let mut line = match count {
            1 => format!("1 read was slow in the last {seconds} s"),
            count => format!("{count} reads were slow in the last {seconds} s"),
        };
        for (statement, took) in &gathered {
            line.push_str(&format!("\n{statement}, {}", took.text(limit)));
        }
        if others > 0 {
            line.push_str(&format!("\n{others} by further statements"));
        }
        self.peers.note_event(line);
    }
}

impl Took {
    fn add(&mut self, took: Duration) {
        self.times = self.times.saturating_add(1);
        self.all = self.all.saturating_add(took);
        (self.least, self.most) = (self.least.min(took), self.most.max(took));
    }

    /// In Cassandra's words.
    fn text(&self, limit: Duration) -> String {
        let millis = |time: Duration| time.as_millis();
        let end = format!("slow timeout {} msec", millis(limit));
        match self.times {
            1 => format!("time {} msec - {end}", millis(self.most)),
            times => format!(
                "was slow {times} times: avg/min/max {}/{}/{} msec - {end}",
                millis(self.all / times),
                millis(self.least),
                millis(self.most)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_time_or_several_are_told_as_cassandra_does() {
        let millis = Duration::from_millis;
        let mut took = Took { times: 1, all: millis(600), least: millis(600), most: millis(600) };
        assert_eq!(took.text(millis(500)), "time 600 msec - slow timeout 500 msec");
        took.add(millis(800));
        let text = "was slow 2 times: avg/min/max 700/600/800 msec - slow timeout 500 msec";
        assert_eq!(took.text(millis(500)), text);
    }
}
