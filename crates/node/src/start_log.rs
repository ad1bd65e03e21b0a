//! What the log says of a start: which node begins, and what it still waits for.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::time::Duration;

use cluster::{Identity, Shard, Standing};
use config::Config;
use env::{Class, Env};
use metrics::Level;

use crate::journal::Journal;

/// How often it says what it waits for.
const WAITS: Duration = Duration::from_secs(10);

/// How far a start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Replay,
    Joins,
    Ended,
}

/// The log of one start; on the first shard.
pub(crate) struct StartLog {
    env: Env,
    journal: Rc<Journal>,
    phase: Cell<Phase>,
    shard: Cell<Weak<Shard>>,
}

impl StartLog {
    /// Says which program starts, and from now on what it waits for. A simulated node, whose log
    /// nobody reads meanwhile, says no such thing.
    pub fn begin(env: &Env, journal: &Rc<Journal>, config: &Config) -> Rc<Self> {
        let start = Rc::new(Self {
            env: env.clone(),
            journal: Rc::clone(journal),
            phase: Cell::new(Phase::Replay),
            shard: Cell::default(),
        });
        let file = config.given.file.as_ref().map(|path| path.display().to_string());
        let file = file.unwrap_or_else(|| "none, built-in defaults".to_owned());
        start.say(format!(
            "Helenus {} starts as Cassandra {}, shards: {}, configuration: {file}, data: {}",
            env!("CARGO_PKG_VERSION"),
            config.release_version,
            env.shards(),
            config.data_dir.display()
        ));
        if journal.is_written() {
            let saying = Rc::downgrade(&start);
            let waiting = env.clone();
            env.spawn(Class::Background, async move {
                loop {
                    waiting.sleep(WAITS).await;
                    match saying.upgrade().filter(|start| start.phase.get() != Phase::Ended) {
                        Some(start) => start.say_waits(),
                        None => return,
                    }
                }
            });
        }
        start
    }

    /// The node knows who it is, and has what its log had.
    pub fn opened(&self, identity: &Identity) {
        let Identity { cluster_name, data_center, rack, broadcast, storage_port, .. } = identity;
        self.say(format!(
            "cluster: {cluster_name}, data center: {data_center}, rack: {rack}, address: \
             {broadcast}:{storage_port}"
        ));
    }

    /// It enters the ring.
    pub fn joins(&self, shard: &Rc<Shard>) {
        self.phase.set(Phase::Joins);
        self.shard.set(Rc::downgrade(shard));
    }

    /// It is in the ring, or was told to end.
    pub fn joined(&self, shard: &Shard) {
        say_place(&self.journal, shard);
    }

    /// It serves.
    pub fn ended(&self) {
        self.phase.set(Phase::Ended);
    }

    fn say(&self, text: String) {
        self.journal.say(Level::Info, text);
    }

    fn say_waits(&self) {
        let for_what = match self.phase.get() {
            Phase::Replay => "the replay of its commit log",
            Phase::Joins => self.joins_by(),
            Phase::Ended => return,
        };
        let after = self.env.now().since(env::Instant::ZERO).as_secs();
        self.say(format!("has not started yet after {after} s: waits for {for_what}"));
    }

    /// What an entry into the ring waits for now.
    fn joins_by(&self) -> &'static str {
        let weak = self.shard.take();
        let shard = weak.upgrade();
        self.shard.set(weak);
        let Some(shard) = shard else { return "gossip" };
        let is_alone = shard.peers().ring().is_none();
        match shard.join().map(|join| join.standing()) {
            _ if is_alone => "gossip with a seed; check seeds and that storage_port is open",
            Some(Standing::Joining) => {
                "schema and gossip, then streams of its data; see nodetool netstats"
            }
            _ => "gossip and schema of the other nodes",
        }
    }
}

/// Says where in the ring the node stands.
pub(crate) fn say_place(journal: &Journal, shard: &Shard) {
    let Some(membership) = shard.membership() else { return };
    let Some(ring) = shard.peers().ring() else { return };
    let local = membership.local();
    if let Some(found) = ring.find(local) {
        let node = ring.node(found);
        let tokens: Vec<String> = node.tokens.iter().map(|token| token.0.to_string()).collect();
        journal.say(
            Level::Info,
            format!("host ID: {}, tokens: [{}]", node.host_id, tokens.join(", ")),
        );
    }
    if shard.join().is_some_and(|join| join.standing() == Standing::Member) {
        // words that tools wait for (`StorageService.handleStateNormal`)
        journal.say(Level::Info, format!("Node /{local} state jump to NORMAL"));
    }
}
