//! The verbs of nodetool and their arguments, by domain, with the texts of refusal of Cassandra's
//! (`tools.NodeTool`, `tools.nodetool.*`, which parses with airline).

mod access;
mod args;
mod caches;
mod compaction;
mod help;
mod hints;
mod names;
mod network;
mod node;
mod repair;
mod request_logs;
mod ring;
mod samples;
mod settings;
mod snapshots;
mod sstables;
mod tables;

use crate::model::{TableName, UnknownTimeout};
pub use access::AccessVerb;
use args::Args;
pub use caches::CachesVerb;
pub use compaction::CompactionVerb;
pub use help::help;
pub use hints::HintsVerb;
use names::{NOT_SERVED, SERVED};
pub use network::{NetworkVerb, RateUnit, StreamLimit};
pub use node::NodeVerb;
pub use repair::{RepairArguments, RepairVerb};
pub use request_logs::RequestLogsVerb;
pub use ring::RingVerb;
pub use samples::SamplesVerb;
pub use settings::{SettingsVerb, Share};
pub use snapshots::SnapshotsVerb;
pub(crate) use snapshots::check as check_snapshot;
pub use sstables::SSTablesVerb;
pub use tables::{TableFilter, TablesVerb};

/// A verb that this node serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Clients, roles and certificates.
    Access(AccessVerb),
    /// Caches.
    Caches(CachesVerb),
    /// Compaction.
    Compaction(CompactionVerb),
    /// Hints.
    Hints(HintsVerb),
    /// Requests and messages.
    Network(NetworkVerb),
    /// The node itself.
    Node(NodeVerb),
    /// Repair.
    Repair(RepairVerb),
    /// The audit log and the full query log.
    RequestLogs(RequestLogsVerb),
    /// The ring.
    Ring(RingVerb),
    /// Samples of partitions.
    Samples(SamplesVerb),
    /// Settings.
    Settings(SettingsVerb),
    /// Snapshots and backups.
    Snapshots(SnapshotsVerb),
    /// SSTables, one by one.
    SSTables(SSTablesVerb),
    /// Keyspaces and tables.
    Tables(TablesVerb),
}

impl From<AccessVerb> for Verb {
    fn from(verb: AccessVerb) -> Self {
        Self::Access(verb)
    }
}

impl From<CachesVerb> for Verb {
    fn from(verb: CachesVerb) -> Self {
        Self::Caches(verb)
    }
}

impl From<CompactionVerb> for Verb {
    fn from(verb: CompactionVerb) -> Self {
        Self::Compaction(verb)
    }
}

impl From<HintsVerb> for Verb {
    fn from(verb: HintsVerb) -> Self {
        Self::Hints(verb)
    }
}

impl From<NetworkVerb> for Verb {
    fn from(verb: NetworkVerb) -> Self {
        Self::Network(verb)
    }
}

impl From<NodeVerb> for Verb {
    fn from(verb: NodeVerb) -> Self {
        Self::Node(verb)
    }
}

impl From<RepairVerb> for Verb {
    fn from(verb: RepairVerb) -> Self {
        Self::Repair(verb)
    }
}

impl From<RequestLogsVerb> for Verb {
    fn from(verb: RequestLogsVerb) -> Self {
        Self::RequestLogs(verb)
    }
}

impl From<RingVerb> for Verb {
    fn from(verb: RingVerb) -> Self {
        Self::Ring(verb)
    }
}

impl From<SamplesVerb> for Verb {
    fn from(verb: SamplesVerb) -> Self {
        Self::Samples(verb)
    }
}

impl From<SettingsVerb> for Verb {
    fn from(verb: SettingsVerb) -> Self {
        Self::Settings(verb)
    }
}

impl From<SnapshotsVerb> for Verb {
    fn from(verb: SnapshotsVerb) -> Self {
        Self::Snapshots(verb)
    }
}

impl From<SSTablesVerb> for Verb {
    fn from(verb: SSTablesVerb) -> Self {
        Self::SSTables(verb)
    }
}

impl From<TablesVerb> for Verb {
    fn from(verb: TablesVerb) -> Self {
        Self::Tables(verb)
    }
}

/// All keyspaces, one keyspace, or tables of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// All, if there is none.
    pub keyspace: Option<String>,
    /// All of the keyspace's, if empty.
    pub tables: Vec<String>,
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
    /// Not a form to print values in.
    #[error("unknown format '{0}': use text or json")]
    UnknownFormat(String),
    /// What nodetool says by itself, and ends.
    #[error("{0}")]
    Said(&'static str),
    /// A combination that nodetool itself fails at.
    #[error("{0}")]
    Failed(String),
    /// An option of a verb of Cassandra's that this node does not serve.
    #[error("{0} is not supported")]
    NotServed(String),
    /// A verb of Cassandra's that this node does not serve, and why not.
    #[error("{0} is not supported: {1}")]
    Absent(String, &'static str),
}

impl VerbError {
    /// Cassandra's exit codes: 1 for bad use, 2 for failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::NotServed(_) | Self::Absent(..) | Self::Failed(_) => 2,
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
            Self::NotServed(_) | Self::Absent(..) => format!("nodetool: {self}\n"),
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
        if let Some((_, why)) = NOT_SERVED.iter().find(|(absent, _)| *absent == name) {
            return Err(VerbError::Absent(name.to_owned(), why));
        }
        if !SERVED.iter().any(|(served, _)| *served == name) {
            // Airline lists the unknown verb with what follows it.
            let all = std::iter::once(name).chain(words);
            return Err(VerbError::Unexpected(all.map(str::to_owned).collect()));
        }
        let mut args = Args::new(name, words, print_port);
        let verb = Self::parse_args(name, &mut args)?;
        args.end()?;
        Ok(verb)
    }

    fn parse_args(name: &str, args: &mut Args) -> Result<Self, VerbError> {
        if let Some(verb) = access::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = caches::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = compaction::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = hints::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = network::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = node::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = repair::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = request_logs::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = ring::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = samples::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = settings::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = snapshots::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = sstables::parse(name, args)? {
            return Ok(verb.into());
        }
        if let Some(verb) = tables::parse(name, args)? {
            return Ok(verb.into());
        }
        Err(VerbError::NotServed(name.to_owned()))
    }
}

/// In which form Cassandra's nodetool prints some values (`-F`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsFormat {
    /// As Jackson does.
    Json,
    /// As SnakeYAML does.
    Yaml,
}

/// The form of `-F`; `wanted` is what is said of another.
fn stats_format(args: &mut Args, wanted: &str) -> Result<Option<StatsFormat>, VerbError> {
    match args.titled(&["-F", "--format"], "format")?.as_deref() {
        None | Some("") => Ok(None),
        Some("json") => Ok(Some(StatsFormat::Json)),
        Some("yaml") => Ok(Some(StatsFormat::Yaml)),
        Some(_) => refused(wanted),
    }
}

fn refused<T>(text: impl Into<String>) -> Result<T, VerbError> {
    Err(VerbError::Arguments(text.into()))
}

fn selection(args: &mut Args) -> Selection {
    Selection { keyspace: args.take(), tables: args.rest() }
}

/// A whole number that must be there.
fn number(args: &mut Args, title: &str) -> Result<i32, VerbError> {
    let Some(text) = args.take() else {
        return refused(format!("Required parameters are missing: {title}"));
    };
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => refused(format!("{title}: can not convert \"{text}\" to a Integer")),
    }
}

/// The table of `ks table`, and what follows.
fn table<const N: usize>(
    args: &mut Args,
    otherwise: &str,
) -> Result<(TableName, [String; N]), VerbError> {
    let mut words = args.rest();
    if words.len() != N + 2 {
        return refused(otherwise);
    }
    let rest = words.split_off(2);
    let (Ok([keyspace, table]), Ok(rest)) = (<[String; 2]>::try_from(words), rest.try_into())
    else {
        return refused(otherwise);
    };
    Ok((TableName { keyspace, table }, rest))
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
    use crate::model::Timeout;

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
        assert_eq!(parse("flush"), Ok(SSTablesVerb::Flush(Selection::default()).into()));
        assert_eq!(
            parse("flush ks a b"),
            Ok(SSTablesVerb::Flush(tables("ks", &["a", "b"])).into())
        );
        assert_eq!(
            parse("compact ks"),
            Ok(CompactionVerb::Compact { of: tables("ks", &[]), split: false }.into())
        );
        assert_eq!(parse("info --tokens"), Ok(NodeVerb::Info { tokens: true }.into()));
        assert_eq!(
            parse("-pp status ks"),
            Ok(RingVerb::Status { keyspace: Some("ks".to_owned()), print_port: true }.into())
        );
        assert_eq!(
            parse("tablestats -i a.b -H c"),
            Ok(TablesVerb::Stats {
                filter: TableFilter { names: vec!["a.b".to_owned(), "c".to_owned()], ignore: true },
                human_readable: true,
                sort: None,
                format: None,
            }
            .into())
        );
        assert_eq!(
            parse("settimeout read 5000"),
            Ok(SettingsVerb::SetTimeout { timeout: Timeout::Read, millis: 5000 }.into())
        );
        assert_eq!(parse("flush -- -H"), Ok(SSTablesVerb::Flush(tables("-H", &[])).into()));
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
        assert_eq!(
            parse("settraceprobability 0.5"),
            Ok(SettingsVerb::SetTraceProbability(Share(0.5)).into())
        );
        assert_eq!(refused("").0, 0);
    }

    #[test]
    fn knows_the_verbs_that_are_not_served() {
        let unknown =
            (2, "nodetool: gcstats is not supported: there is no garbage collector\n".to_owned());
        assert_eq!(refused("gcstats"), unknown);
        assert_eq!(
            refused("compact --partition f"),
            (2, "nodetool: compact --partition is not supported\n".to_owned())
        );
    }

    #[test]
    fn every_verb_of_cassandra_is_known_once() {
        let mut names: Vec<_> = SERVED.iter().chain(NOT_SERVED).map(|(name, _)| *name).collect();
        names.sort_unstable();
        let own = ["doctor", "iostats", "plan"];
        names.retain(|name| !own.contains(name));
        let of_cassandra = include_str!("../../../testdata/nodetool/verbs-5.0.9.txt");
        assert_eq!(names, of_cassandra.lines().collect::<Vec<_>>());
        assert_eq!(names.len(), 148);
        for (name, why) in NOT_SERVED {
            let line = format!("nodetool: {name} is not supported: {why}\n");
            assert_eq!(refused(name), (2, line));
            assert!(!why.is_empty() && !why.ends_with('.') && !why.contains('\n'), "{name}");
        }
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
