//! The verbs of nodetool and their arguments, with the texts of refusal of Cassandra's
//! (`tools.NodeTool`, `tools.nodetool.*`, which parses with airline).

mod args;
mod caches;
mod compactions;
mod help;
mod hints;
mod io;
mod names;
mod snapshots;
mod sstables;

use crate::guardrails::{Category, Shown};
use crate::operator::{
    CacheName, HandoffChange, NewImport, Scrub, Snapshots, StopWhich, TableName, Verify,
};
use crate::timeout::{Timeout, UnknownTimeout};
use args::Args;
pub use help::help;
use names::{NOT_SERVED, SERVED};
pub(crate) use snapshots::check as check_snapshot;

/// What is said where more than one guardrail is asked for.
const ONE_GUARDRAIL: &str = "Specify only one guardrail name to get the configuration of or no name to get the configuration of all of them.";
/// What is said where a guardrail is asked for by its category and by its name.
const NO_GUARDRAIL: &str = "Do not specify additional arguments when --category/-c is set.";

/// A verb that this node serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Drops what other nodes own.
    Cleanup {
        /// Of which tables.
        of: Selection,
        /// How many SSTables at a time.
        jobs: i64,
    },
    /// Removes snapshots.
    ClearSnapshot {
        /// Of which keyspaces; of all, if empty.
        keyspaces: Vec<String>,
        /// Which; all, if there is none.
        name: Option<String>,
        /// Only those older than so many seconds.
        older_than: Option<u64>,
        /// Only those made before, in milliseconds since the epoch.
        before: Option<i64>,
        /// The same as the operator wrote it.
        before_text: Option<String>,
    },
    /// Merges the SSTables of tables into few.
    Compact {
        /// Which.
        of: Selection,
        /// Several files where the strategy would make one.
        split: bool,
    },
    /// Merges the SSTables of these data files.
    CompactFiles(Vec<String>),
    /// The compactions of the last week.
    CompactionHistory,
    /// The directories of tables' files; of all tables, if empty.
    DataPaths(Vec<Selection>),
    /// Drops what is deleted or written over elsewhere.
    GarbageCollect {
        /// Of which tables.
        of: Selection,
        /// Single cells too.
        cells: bool,
        /// How many SSTables at a time.
        jobs: i64,
    },
    /// Empties a cache.
    InvalidateCache(CacheName),
    /// Sets what caches may hold, in MiB, until the next start.
    SetCacheCapacity {
        /// Of keys.
        keys: i32,
        /// Of rows.
        rows: i32,
        /// Of counters.
        counters: i32,
    },
    /// Sets of how many entries of each cache the names are saved, until the next start; 0: of all.
    SetCacheKeysToSave {
        /// Of keys.
        keys: i32,
        /// Of rows.
        rows: i32,
        /// Of counters.
        counters: i32,
    },
    /// How few and how many SSTables of a table are compacted at once.
    GetCompactionThreshold(TableName),
    /// How fast compactions may write.
    GetCompactionThroughput {
        /// As a number with a fraction.
        precise: bool,
    },
    /// How many compactions may run at a time.
    GetConcurrentCompactors,
    /// Sets how few and how many SSTables of a table are compacted at once, until the next start.
    SetCompactionThreshold {
        /// Of which table.
        of: TableName,
        /// How few.
        min: u32,
        /// How many.
        max: u32,
    },
    /// Sets how fast compactions may write, until the next start.
    SetCompactionThroughput {
        /// A second; 0 is no limit.
        mebibytes: u64,
    },
    /// Sets how many compactions may run at a time, until the next start.
    SetConcurrentCompactors(u64),
    /// Lets tables be compacted by themselves, or not.
    SetAutoCompaction {
        /// Which.
        of: Selection,
        /// Whether.
        enabled: bool,
    },
    /// Whether tables are compacted by themselves.
    StatusAutoCompaction {
        /// Which.
        of: Selection,
        /// Each on a line.
        all: bool,
    },
    /// Stops compactions under way.
    Stop(StopWhich),
    /// The data files that may hold a partition.
    SSTables {
        /// Of which table.
        of: TableName,
        /// The partition's key.
        key: String,
        /// Is the key in hexadecimal digits?
        hex: bool,
        /// With their levels.
        levels: bool,
    },
    /// What compaction did and does.
    CompactionStats {
        /// Sizes with units.
        human_readable: bool,
        /// Columns as in `system_views.sstable_tasks`.
        vtable: bool,
    },
    /// Name, partitioner, schema versions, keyspaces.
    /// `statushandoff`.
    StatusHandoff,
    /// `getmaxhintwindow`.
    GetMaxHintWindow,
    /// `enablehandoff`, `disablehandoff`, those for a data center, `sethintedhandoffthrottlekb`, `setmaxhintwindow`.
    SetHandoff(HandoffChange),
    /// `pausehandoff`, or `resumehandoff`.
    PauseHandoff(bool),
    /// `listpendinghints`.
    ListPendingHints {
        /// With ports.
        print_port: bool,
    },
    /// `truncatehints`: all, or those for the node of an address.
    TruncateHints(Option<String>),
    /// `assassinate`.
    Assassinate {
        /// The node.
        address: String,
    },
    /// `failuredetector`.
    FailureDetector {
        /// With ports.
        print_port: bool,
    },
    /// `getendpoints`.
    GetEndpoints {
        /// The table.
        table: TableName,
        /// The partition's key.
        key: String,
        /// With ports.
        print_port: bool,
    },
    /// `getseeds`.
    GetSeeds,
    /// `ring`.
    Ring {
        /// Whose replication decides what a node owns.
        keyspace: Option<String>,
        /// Addresses with ports.
        print_port: bool,
    },
    /// `describering`.
    DescribeRing {
        /// The keyspace.
        keyspace: String,
        /// Addresses with ports.
        print_port: bool,
    },
    /// `enablegossip`, or `disablegossip`.
    SetGossip(bool),
    /// `reloadseeds`.
    ReloadSeeds,
    /// `tpstats`.
    PoolStats,
    /// `netstats`.
    NetStats,
    /// `proxyhistograms`.
    ProxyHistograms,
    /// `gossipinfo`.
    GossipInfo {
        /// With ports.
        print_port: bool,
    },
    /// `statusgossip`.
    StatusGossip,
    /// `describecluster`.
    DescribeCluster {
        /// Addresses with ports.
        print_port: bool,
    },
    /// Stops keeping links to what is flushed.
    DisableBackup,
    /// Stops serving clients.
    DisableBinary {
        /// Without waiting for requests that run.
        force: bool,
    },
    /// Stops accepting writes and flushes everything.
    Drain,
    /// Keeps links to what is flushed.
    EnableBackup,
    /// Serves clients again.
    EnableBinary,
    /// Writes memtables to disk.
    Flush(Selection),
    /// Shows guardrails as they stand.
    GetGuardrails(Shown),
    /// Says how long a timeout is.
    GetTimeout(Timeout),
    /// Says which share of requests is traced.
    GetTraceProbability,
    /// Takes over SSTables from directories.
    Import {
        /// Which, whereto and how.
        import: NewImport,
        /// Say that nothing is verified.
        quick: bool,
    },
    /// Identity, load, uptime, caches.
    Info {
        /// Every token on a line of its own.
        tokens: bool,
    },
    /// The pattern of I/O.
    IoStats {
        /// Of the last so many.
        seconds: u64,
        /// For programs.
        json: bool,
        /// With each window.
        windows: bool,
    },
    /// The snapshots.
    ListSnapshots {
        /// Those that go by themselves too.
        ttl: bool,
        /// Those of repairs too.
        ephemeral: bool,
    },
    /// Estimates the sizes of all tables.
    RefreshSizeEstimates,
    /// Sets a guardrail until the next start: its name and its values.
    SetGuardrails(Vec<String>),
    /// Sets a timeout until the next start.
    SetTimeout {
        /// Which.
        timeout: Timeout,
        /// Milliseconds.
        millis: u64,
    },
    /// Traces a share of all requests until the next start.
    SetTraceProbability(Share),
    /// Takes a snapshot.
    Snapshot {
        /// Of what.
        of: Snapshots,
        /// The same as the operator wrote it.
        label: String,
        /// Its name; the time in milliseconds, if there is none.
        name: Option<String>,
        /// With what is in memtables.
        flush: bool,
        /// Seconds until it goes by itself.
        ttl: Option<u64>,
        /// The same as the operator wrote it.
        ttl_text: Option<String>,
    },
    /// Takes over what was put into the directories of a table: keyspace and table.
    Refresh(Vec<String>),
    /// Puts SSTables into the directories where they belong.
    RelocateSSTables(Selection),
    /// Rewrites SSTables without what cannot be read.
    Scrub {
        /// Of which tables.
        of: Selection,
        /// How.
        how: Scrub,
        /// How many SSTables at a time.
        jobs: i64,
    },
    /// The nodes of the cluster.
    Status {
        /// Whose replication decides what a node owns.
        keyspace: Option<String>,
        /// Addresses with ports.
        print_port: bool,
    },
    /// Whether links to what is flushed are kept.
    StatusBackup,
    /// Whether clients are served.
    StatusBinary,
    /// Ends the node.
    StopDaemon,
    /// Percentiles of a table, or of all.
    TableHistograms(Option<TableName>),
    /// Counters of tables.
    TableStats {
        /// Which.
        filter: TableFilter,
        /// Sizes with units.
        human_readable: bool,
    },
    /// Rewrites SSTables in the version that the node writes.
    UpgradeSSTables {
        /// Of which tables.
        of: Selection,
        /// Those that are of that version too.
        all: bool,
    },
    /// Looks for damage in SSTables.
    Verify {
        /// Of which tables.
        of: Selection,
        /// How.
        how: Verify,
    },
    /// The release of Cassandra that the node is compatible with.
    Version {
        /// The commit it was built from too.
        verbose: bool,
    },
}

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

// it is a number
impl Eq for Share {}

/// All keyspaces, one keyspace, or tables of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// All, if there is none.
    pub keyspace: Option<String>,
    /// All of the keyspace's, if empty.
    pub tables: Vec<String>,
}

/// Tables to show, or not to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFilter {
    /// `keyspace` or `keyspace.table`.
    pub names: Vec<String>,
    /// Show those not named.
    pub ignore: bool,
}

/// A command line that is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerbError {
    /// There is no verb: the help is the answer.
    #[error("no command specified")]
    Nothing,
    /// Arguments or options that nobody knows; an unknown verb is one.
    #[error("Found unexpected parameters: [{}]", .0.join(", "))]
    Unexpected(Vec<String>),
    /// Arguments that do not fit.
    #[error("{0}")]
    Arguments(String),
    /// Not a category of guardrails.
    #[error(
        "Illegal value for -c/--category used: '{0}'. Supported values are values,thresholds,flags,others."
    )]
    UnknownCategory(String),
    /// Not the name of a timeout.
    #[error(transparent)]
    UnknownTimeout(#[from] UnknownTimeout),
    /// What nodetool says by itself, and ends.
    #[error("{0}")]
    Said(&'static str),
    /// A combination that nodetool itself fails at.
    #[error("{0}")]
    Failed(String),
    /// A verb of Cassandra's, or an option of a verb, that this node does not serve.
    #[error("{0} is not served yet")]
    NotServed(String),
}

impl VerbError {
    /// Cassandra's exit codes: 1 for bad use, 2 for failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::NotServed(_) | Self::Failed(_) => 2,
            _ => 1,
        }
    }

    /// What nodetool prints on its standard output.
    pub fn text(&self) -> String {
        match self {
            Self::Nothing => help(None),
            // Cassandra prints this one by itself.
            Self::UnknownCategory(_) => format!("\nError: {self}\n"),
            Self::Said(_) => format!("{self}\n"),
            Self::NotServed(_) => format!("nodetool: {self}\n"),
            Self::Failed(_) => format!("error: {self}\n"),
            _ => bad_use(&self.to_string()),
        }
    }
}

/// What nodetool prints when it was used badly.
pub(crate) fn bad_use(message: &str) -> String {
    format!("nodetool: {message}\nSee 'nodetool help' or 'nodetool help <command>'.\n")
}

impl Verb {
    /// The verb and arguments of a command line, after the global options; of those, only
    /// `-pp` (`--print-port`) may still stand before the verb.
    pub fn parse(line: &[String]) -> Result<Self, VerbError> {
        let mut words = line.iter().map(String::as_str);
        let mut name = words.next();
        let print_port = matches!(name, Some("-pp" | "--print-port"));
        if print_port {
            name = words.next();
        }
        let name = name.ok_or(VerbError::Nothing)?;
        if NOT_SERVED.contains(&name) {
            return Err(VerbError::NotServed(name.to_owned()));
        }
        if !SERVED.iter().any(|(served, _)| *served == name) {
            // Airline lists the unknown verb with what follows it.
            let all = std::iter::once(name).chain(words);
            return Err(VerbError::Unexpected(all.map(str::to_owned).collect()));
        }
        let mut args = Args::new(name, words);
        let verb = Self::parse_args(name, &mut args, print_port)?;
        args.end()?;
        Ok(verb)
    }

    fn parse_args(name: &str, args: &mut Args, print_port: bool) -> Result<Self, VerbError> {
        Ok(match name {
            "cleanup" => sstables::cleanup(args)?,
            "clearsnapshot" => snapshots::clear(args)?,
            "compact" => compactions::compact(args)?,
            "compactionhistory" => {
                args.not_served(&["-F", "--format"])?;
                Self::CompactionHistory
            }
            "compactionstats" => Self::CompactionStats {
                human_readable: args.flag(&["-H", "--human-readable"]),
                vtable: args.flag(&["-V", "--vtable"]),
            },
            "datapaths" => compactions::data_paths(args)?,
            "assassinate" => match args.take() {
                Some(address) => Self::Assassinate { address },
                None => return refused("Required parameters are missing: ip_address"),
            },
            "disablehandoff" => Self::SetHandoff(HandoffChange::Enabled(false)),
            "disablehintsfordc" => hints::for_center(args, "disablehintsfordc", false)?,
            "enablehandoff" => Self::SetHandoff(HandoffChange::Enabled(true)),
            "enablehintsfordc" => hints::for_center(args, "enablehintsfordc", true)?,
            "getmaxhintwindow" => Self::GetMaxHintWindow,
            "listpendinghints" => Self::ListPendingHints { print_port },
            "pausehandoff" => Self::PauseHandoff(true),
            "resumehandoff" => Self::PauseHandoff(false),
            "sethintedhandoffthrottlekb" => hints::throttle(args)?,
            "setmaxhintwindow" => hints::window(args)?,
            "statushandoff" => Self::StatusHandoff,
            "truncatehints" => Self::TruncateHints(args.take()),
            "describecluster" => Self::DescribeCluster { print_port },
            "describering" => match args.take() {
                Some(keyspace) => Self::DescribeRing { keyspace, print_port },
                None => return refused("Required parameters are missing: keyspace"),
            },
            "disablegossip" => Self::SetGossip(false),
            "enablegossip" => Self::SetGossip(true),
            "netstats" => {
                // bytes are those of streams, of which there are none
                args.flag(&["-H", "--human-readable"]);
                Self::NetStats
            }
            "proxyhistograms" => Self::ProxyHistograms,
            "reloadseeds" => Self::ReloadSeeds,
            "ring" => {
                args.not_served(&["-r", "--resolve-ip"])?;
                Self::Ring { keyspace: args.take(), print_port }
            }
            "tpstats" => {
                args.not_served(&["-F", "--format"])?;
                Self::PoolStats
            }
            "failuredetector" => Self::FailureDetector { print_port },
            "getendpoints" => match (args.take(), args.take(), args.take()) {
                (Some(keyspace), Some(table), Some(key)) => {
                    Self::GetEndpoints { table: TableName { keyspace, table }, key, print_port }
                }
                _ => {
                    return refused(
                        "getendpoints requires keyspace, table and partition key arguments",
                    );
                }
            },
            "getseeds" => Self::GetSeeds,
            "gossipinfo" => {
                args.not_served(&["-r", "--resolve-ip"])?;
                Self::GossipInfo { print_port }
            }
            "statusgossip" => Self::StatusGossip,
            "disableautocompaction" => compactions::set_auto(args, false),
            "disablebackup" => Self::DisableBackup,
            "disablebinary" => Self::DisableBinary { force: args.flag(&["-f", "--force"]) },
            "drain" => Self::Drain,
            "enableautocompaction" => compactions::set_auto(args, true),
            "enablebackup" => Self::EnableBackup,
            "enablebinary" => Self::EnableBinary,
            "flush" => Self::Flush(selection(args)),
            "garbagecollect" => sstables::garbage_collect(args)?,
            "getcompactionthreshold" => sstables::get_thresholds(args)?,
            "getcompactionthroughput" => {
                Self::GetCompactionThroughput { precise: args.flag(&["-d", "--precise-mib"]) }
            }
            "getconcurrentcompactors" => Self::GetConcurrentCompactors,
            "getguardrailsconfig" => Self::GetGuardrails(shown(args)?),
            "getsstables" => compactions::sstables(args)?,
            "gettimeout" => Self::GetTimeout(get_timeout(&args.rest())?),
            "gettraceprobability" => Self::GetTraceProbability,
            "import" => compactions::import(args)?,
            "info" => {
                args.not_served(&["-O", "--out-of-range-ops"])?;
                Self::Info { tokens: args.flag(&["-T", "--tokens"]) }
            }
            "invalidatecountercache" => Self::InvalidateCache(CacheName::Counters),
            "invalidatekeycache" => Self::InvalidateCache(CacheName::Keys),
            "invalidaterowcache" => Self::InvalidateCache(CacheName::Rows),
            "iostats" => io::stats(args)?,
            "listsnapshots" => snapshots::list(args),
            "refreshsizeestimates" => Self::RefreshSizeEstimates,
            "refresh" => Self::Refresh(args.rest()),
            "relocatesstables" => sstables::relocate(args)?,
            "scrub" => sstables::scrub(args)?,
            "setcachecapacity" => caches::set_capacity(args)?,
            "setcachekeystosave" => caches::set_keys_to_save(args)?,
            "setcompactionthreshold" => sstables::set_thresholds(args)?,
            "setcompactionthroughput" => compactions::set_throughput(args)?,
            "setconcurrentcompactors" => compactions::set_concurrent(args)?,
            "setguardrailsconfig" => Self::SetGuardrails(args.rest()),
            "settimeout" => set_timeout(&args.rest())?,
            "settraceprobability" => Self::SetTraceProbability(share(args)?),
            "snapshot" => snapshots::snapshot(args)?,
            "status" => {
                args.not_served(&["-r", "--resolve-ip"])?;
                Self::Status { keyspace: args.take(), print_port }
            }
            "statusautocompaction" => compactions::status_auto(args),
            "statusbackup" => Self::StatusBackup,
            "statusbinary" => Self::StatusBinary,
            "stop" => compactions::stop(args)?,
            "stopdaemon" => Self::StopDaemon,
            "tablehistograms" => sstables::histograms(args)?,
            "tablestats" => table_stats(args)?,
            "upgradesstables" => compactions::upgrade(args)?,
            "verify" => sstables::verify(args)?,
            "version" => Self::Version { verbose: args.flag(&["-v", "--verbose"]) },
            other => return Err(VerbError::NotServed(other.to_owned())),
        })
    }
}

fn refused<T>(text: impl Into<String>) -> Result<T, VerbError> {
    Err(VerbError::Arguments(text.into()))
}

fn selection(args: &mut Args) -> Selection {
    Selection { keyspace: args.take(), tables: args.rest() }
}

fn table_stats(args: &mut Args) -> Result<Verb, VerbError> {
    args.not_served(&["-F", "--format"])?;
    args.not_served(&["-s", "--sort"])?;
    args.not_served(&["-t", "--top"])?;
    args.not_served(&["-l", "--sstable-location-check"])?;
    let ignore = args.flag(&["-i"]);
    let human_readable = args.flag(&["-H", "--human-readable"]);
    Ok(Verb::TableStats { filter: TableFilter { names: args.rest(), ignore }, human_readable })
}

fn shown(args: &mut Args) -> Result<Shown, VerbError> {
    let expand = args.flag(&["--expand"]);
    let category = match args.value(&["-c", "--category"])? {
        None => None,
        Some(name) => Some(Category::of(&name).ok_or(VerbError::UnknownCategory(name))?),
    };
    let mut names = args.rest();
    if names.len() > 1 {
        return Err(VerbError::Arguments(ONE_GUARDRAIL.to_owned()));
    }
    let name = names.pop();
    if name.is_some() && category.is_some() {
        return Err(VerbError::Arguments(NO_GUARDRAIL.to_owned()));
    }
    Ok(Shown { category, expand, name })
}

fn share(args: &mut Args) -> Result<Share, VerbError> {
    let refused = |text: &str| Err(VerbError::Arguments(text.to_owned()));
    let Some(text) = args.take() else {
        return refused("Required parameters are missing: trace_probability");
    };
    let Ok(value) = text.parse::<f64>() else {
        return refused(&format!("trace_probability: can not convert \"{text}\" to a Double"));
    };
    match (0.0..=1.0).contains(&value) {
        true => Ok(Share(value)),
        false => refused("Trace probability must be between 0 and 1"),
    }
}

fn get_timeout(args: &[String]) -> Result<Timeout, VerbError> {
    match args {
        [name] => Ok(name.parse()?),
        _ => Err(VerbError::Arguments(format!(
            "gettimeout requires a timeout type, one of ({})",
            Timeout::NAMES
        ))),
    }
}

fn set_timeout(args: &[String]) -> Result<Verb, VerbError> {
    let [name, millis] = args else {
        return Err(VerbError::Arguments(format!(
            "Timeout type followed by value in ms (0 disables socket streaming timeout). Type \
             should be one of ({})",
            Timeout::NAMES
        )));
    };
    // Cassandra looks at the number first.
    let millis: i64 = millis
        .parse()
        .map_err(|_| VerbError::Arguments(format!("For input string: \"{millis}\"")))?;
    let millis = u64::try_from(millis)
        .map_err(|_| VerbError::Arguments("timeout must be non-negative".to_owned()))?;
    let timeout = name.parse()?;
    Ok(Verb::SetTimeout { timeout, millis })
}

/// The verb of a command line.
#[cfg(test)]
fn parse(line: &str) -> Result<Verb, VerbError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Verb::parse(&words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the line prints, with its exit code.
    fn refused(line: &str) -> (u8, String) {
        let e = parse(line).unwrap_err();
        (e.exit_code(), e.text())
    }

    #[test]
    fn reads_verbs_with_their_arguments() {
        let tables = |ks: &str, tables: &[&str]| Selection {
            keyspace: Some(ks.to_owned()),
            tables: tables.iter().map(|t| (*t).to_owned()).collect(),
        };
        assert_eq!(parse("flush"), Ok(Verb::Flush(Selection::default())));
        assert_eq!(parse("flush ks a b"), Ok(Verb::Flush(tables("ks", &["a", "b"]))));
        assert_eq!(parse("compact ks"), Ok(Verb::Compact { of: tables("ks", &[]), split: false }));
        assert_eq!(parse("info --tokens"), Ok(Verb::Info { tokens: true }));
        assert_eq!(
            parse("-pp status ks"),
            Ok(Verb::Status { keyspace: Some("ks".to_owned()), print_port: true })
        );
        assert_eq!(
            parse("tablestats -i a.b -H c"),
            Ok(Verb::TableStats {
                filter: TableFilter { names: vec!["a.b".to_owned(), "c".to_owned()], ignore: true },
                human_readable: true
            })
        );
        assert_eq!(
            parse("settimeout read 5000"),
            Ok(Verb::SetTimeout { timeout: Timeout::Read, millis: 5000 })
        );
        assert_eq!(parse("flush -- -H"), Ok(Verb::Flush(tables("-H", &[]))));
    }

    /// Captured from nodetool 5.0.9.
    #[test]
    fn refuses_as_cassandra_does() {
        let bad = |message: &str| {
            let text =
                format!("nodetool: {message}\nSee 'nodetool help' or 'nodetool help <command>'.\n");
            (1, text)
        };
        assert_eq!(refused("bogusverb"), bad("Found unexpected parameters: [bogusverb]"));
        assert_eq!(refused("info --bogus"), bad("Found unexpected parameters: [--bogus]"));
        assert_eq!(refused("info extra"), bad("Found unexpected parameters: [extra]"));
        const TYPES: &str = "read, range, write, counterwrite, cascontention, truncate, \
            internodeconnect, internodeuser, internodestreaminguser, misc (general \
            rpc_timeout_in_ms)";
        assert_eq!(
            refused("gettimeout"),
            bad(&format!("gettimeout requires a timeout type, one of ({TYPES})"))
        );
        assert_eq!(
            refused("gettimeout bogus"),
            bad(&format!("Timeout type requires one of ({TYPES})"))
        );
        assert_eq!(
            refused("settimeout read"),
            bad(&format!(
                "Timeout type followed by value in ms (0 disables socket streaming timeout). Type \
                 should be one of ({TYPES})"
            ))
        );
        assert_eq!(refused("settimeout read abc"), bad("For input string: \"abc\""));
        assert_eq!(refused("settimeout bogus -5"), bad("timeout must be non-negative"));
        assert_eq!(
            refused("settraceprobability"),
            bad("Required parameters are missing: trace_probability")
        );
        assert_eq!(
            refused("settraceprobability 1.5"),
            bad("Trace probability must be between 0 and 1")
        );
        assert_eq!(parse("settraceprobability 0.5"), Ok(Verb::SetTraceProbability(Share(0.5))));
        assert_eq!(refused("").0, 0);
    }

    /// As nodetool 5.0.9 answered.
    #[test]
    fn reads_what_guardrails_to_show() {
        assert_eq!(parse("getguardrailsconfig"), Ok(Verb::GetGuardrails(Shown::default())));
        let category = Some(Category::Flags);
        let shown = Shown { category, expand: true, name: None };
        assert_eq!(parse("getguardrailsconfig --expand -c flags"), Ok(Verb::GetGuardrails(shown)));
        assert!(refused("getguardrailsconfig a b").1.contains("Specify only one guardrail name"));
        let both = refused("getguardrailsconfig -c flags group_by_enabled").1;
        assert!(both.contains("Do not specify additional arguments"), "{both}");
        let unknown = "\nError: Illegal value for -c/--category used: 'bogus'. Supported values are values,thresholds,flags,others.\n";
        assert_eq!(refused("getguardrailsconfig -c bogus"), (1, unknown.to_owned()));
    }

    #[test]
    fn knows_the_verbs_that_are_not_served() {
        assert_eq!(refused("repair ks"), (2, "nodetool: repair is not served yet\n".to_owned()));
        assert_eq!(
            refused("compact --partition f"),
            (2, "nodetool: compact --partition is not served yet\n".to_owned())
        );
    }

    #[test]
    fn every_verb_of_cassandra_is_known_once() {
        let mut names: Vec<_> = SERVED.iter().map(|(name, _)| *name).collect();
        names.extend(NOT_SERVED);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for (name, _) in SERVED {
            let result = parse(name);
            assert!(!matches!(result, Err(VerbError::NotServed(_))), "{name}: {result:?}");
        }
    }

    proptest! {
        #[test]
        fn no_command_line_panics(line in prop::collection::vec("[-a-z.]{0,12}", 0..6), n: usize) {
            let _ = Verb::parse(&line);
            let verb = SERVED[n % SERVED.len()].0.to_owned();
            let _ = Verb::parse(&[&[verb][..], &line].concat());
        }
    }
}
