//! Which lines are written: a level for each logger, as logback has it.

use std::collections::BTreeMap;

use metrics::Level;

use crate::areas::{Area, PACKAGE};

/// The logger that all others are under.
pub const ROOT: &str = "ROOT";
/// Loggers that have a level of their own, at most: an operator's script may make up names.
pub const LOGGERS_MAX: usize = 1_000;

/// What a line must be at least, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Threshold {
    /// Everything.
    All,
    /// The same: the node has no such lines.
    Trace,
    /// The same.
    Debug,
    /// What the node did, and worse.
    Info,
    /// What the node goes on without, and worse.
    Warn,
    /// What the operator has to look at.
    Error,
    /// Nothing.
    Off,
}

impl Threshold {
    const ALL: [Self; 7] =
        [Self::All, Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error, Self::Off];

    /// Logback's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "ALL",
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
            Self::Off => "OFF",
        }
    }

    /// Of a word, whatever its case; DEBUG of any other (`Level.toLevel` of logback).
    pub fn of(word: &str) -> Self {
        let named = |level: &Self| level.name().eq_ignore_ascii_case(word.trim());
        Self::ALL.into_iter().find(named).unwrap_or(Self::Debug)
    }

    /// Does a line of this level pass?
    pub fn passes(self, level: Level) -> bool {
        self <= match level {
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
        }
    }
}

/// What became of an order to set a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetLevel {
    /// Lines of these areas have it now.
    Set(Vec<&'static str>),
    /// The node says nothing under these names, which have the level all the same.
    Nothing(Vec<String>),
    /// Too many names have a level.
    TooMany,
}

/// The levels of a node.
#[derive(Clone, Debug)]
pub struct Levels {
    start: Threshold,
    root: Threshold,
    loggers: BTreeMap<String, Threshold>,
    /// What comes of it, for each area.
    of_areas: Vec<Threshold>,
}

impl Levels {
    /// As the configuration has them.
    pub fn new(start: Threshold) -> Self {
        let of_areas = Area::all().map(|_| start).collect();
        Self { start, root: start, loggers: BTreeMap::new(), of_areas }
    }

    /// Is a line written?
    pub fn allow(&self, area: Area, level: Level) -> bool {
        self.of_areas.get(area.index()).unwrap_or(&self.root).passes(level)
    }

    fn settle(&mut self) {
        self.of_areas.fill(self.root);
        // a name that is longer says more of what it stands for, and an area's own name most
        let is_area = |name: &str| Area::all().any(|area| area.name() == name);
        let mut loggers: Vec<_> = self.loggers.iter().collect();
        loggers.sort_by_key(|(name, _)| (is_area(name), name.len()));
        for (name, threshold) in loggers {
            for area in Area::under(name) {
                if let Some(kept) = self.of_areas.get_mut(area.index()) {
                    *kept = *threshold;
                }
            }
        }
    }

    /// What `nodetool setlogginglevel` does, with a component or a logger's name and a level; an
    /// empty one is none.
    pub fn set(&mut self, target: &str, level: &str) -> SetLevel {
        let (target, level) = (target.trim(), level.trim());
        if target.is_empty() && level.is_empty() {
            *self = Self::new(self.start);
            return SetLevel::Set(Vec::new());
        }
        let names = component(target);
        let names: Vec<String> = match names.is_empty() {
            true => vec![target.to_owned()],
            false => names.iter().map(|name| format!("{PACKAGE}.{name}")).collect(),
        };
        let threshold = (!level.is_empty()).then(|| Threshold::of(level));
        if threshold.is_some() && self.loggers.len() + names.len() > LOGGERS_MAX {
            return SetLevel::TooMany;
        }
        for name in &names {
            match threshold {
                Some(threshold) if is_root(name) => self.root = threshold,
                Some(threshold) => drop(self.loggers.insert(name.clone(), threshold)),
                // as logback: the root always has a level
                None => drop(self.loggers.remove(name)),
            }
        }
        self.settle();
        let is_meant = |area: &Area| names.iter().any(|name| stands_for(name, *area));
        let areas: Vec<_> = Area::all().filter(is_meant).map(Area::name).collect();
        match areas.is_empty() {
            true => SetLevel::Nothing(names),
            false => SetLevel::Set(areas),
        }
    }

    /// Each logger that has a level, with its word: what `nodetool getlogginglevels` shows.
    pub fn shown(&self) -> Vec<(String, &'static str)> {
        let loggers = self.loggers.iter().map(|(name, level)| (name.clone(), level.name()));
        std::iter::once((ROOT.to_owned(), self.root.name())).chain(loggers).collect()
    }
}

fn is_root(name: &str) -> bool {
    name.eq_ignore_ascii_case(ROOT)
}

fn stands_for(name: &str, area: Area) -> bool {
    is_root(name) || Area::under(name).contains(&area)
}

/// The loggers of a component of `SetLoggingLevel`; of another word none.
fn component(word: &str) -> &'static [&'static str] {
    match word {
        "bootstrap" => &[
            "gms",
            "hints",
            "schema",
            "service.StorageService",
            "db.SystemKeyspace",
            "batchlog.BatchlogManager",
            "net.MessagingService",
        ],
        "repair" => &["repair", "db.compaction.CompactionManager", "service.SnapshotVerbHandler"],
        "streaming" => &["streaming", "dht.RangeStreamer"],
        "compaction" => {
            &["db.compaction", "db.ColumnFamilyStore", "io.sstable.IndexSummaryRedistribution"]
        }
        "cql" => &[
            "cql3",
            "auth",
            "batchlog",
            "net.ResponseVerbHandler",
            "service.AbstractReadExecutor",
            "service.AbstractWriteResponseHandler",
            "service.paxos",
            "service.ReadCallback",
            "service.ResponseResolver",
        ],
        "ring" => &[
            "gms",
            "service.PendingRangeCalculatorService",
            "service.LoadBroadcaster",
            "transport.Server",
        ],
        _ => &[],
    }
}
