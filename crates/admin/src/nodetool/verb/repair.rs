//! Verbs of repair: `tools.nodetool.Repair` and `RepairAdmin`.

use std::collections::BTreeMap;

use super::args::Args;
use super::{Selection, VerbError, refused, selection};
use crate::model::{RepairOrder, RepairScope};

/// The key of data centers that take part.
const CENTERS: &str = "dataCenters";
/// The kind of preview that is none.
const REAL: &str = "NONE";

/// A verb of repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairVerb {
    /// `repair`: starts repairs, one keyspace after the other, and watches them.
    Repair(Box<RepairArguments>),
    /// `repair --watch`: watches a repair that was started before.
    Watch {
        /// Its number.
        command: i32,
    },
    /// `repair_admin list`
    Sessions {
        /// Those that are over too.
        all: bool,
        /// Only those with a part in `start:end`.
        range: Option<String>,
    },
    /// `repair_admin cancel`
    Cancel {
        /// Which session.
        session: String,
        /// Even if another node leads it.
        force: bool,
    },
    /// `repair_admin cleanup`
    CleanUp {
        /// Of which data.
        scope: RepairScope,
        /// Ends compactions that are in the way.
        force: bool,
    },
    /// `repair_admin summarize-pending`
    Pending {
        /// Of which data.
        scope: RepairScope,
        /// By the sessions' states too.
        verbose: bool,
    },
    /// `repair_admin summarize-repaired`
    Repaired {
        /// Of which data.
        scope: RepairScope,
        /// Each range too.
        verbose: bool,
    },
}

/// The command line of `repair`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairArguments {
    /// What to repair.
    pub of: Selection,
    /// Cassandra's map, but for the node's own data center.
    options: BTreeMap<String, String>,
    /// Only with nodes of the node's own data center.
    in_local_center: bool,
    /// Primary ranges, of some nodes only.
    leaves_primary_ranges: bool,
}

impl RepairArguments {
    /// As `Repair.createOptions` has it.
    fn read(args: &mut Args) -> Result<Self, VerbError> {
        let is_full = args.flag(&["-full", "--full"]);
        let preview = preview(args, is_full);
        let is_real = preview == REAL;
        let paxos_only = args.flag(&["-paxos-only", "--paxos-only"]) && is_real;
        let skip_paxos = args.flag(&["-skip-paxos", "--skip-paxos"]);
        let primary_range = args.flag(&["-pr", "--partitioner-range"]);
        let centers = args.values(&["-dc", "--in-dc"], "specific_dc")?;
        let hosts = args.values(&["-hosts", "--in-hosts"], "specific_host")?;
        let (start, end) = tokens(args)?;
        let mut options = vec![
            ("parallelism", parallelism(args).to_owned()),
            ("primaryRange", primary_range.to_string()),
            ("incremental", (!is_full && !paxos_only).to_string()),
            ("jobThreads", job_threads(args)?.to_string()),
            ("trace", args.flag(&["-tr", "--trace"]).to_string()),
            ("pullRepair", args.flag(&["-pl", "--pull"]).to_string()),
            ("forceRepair", args.flag(&["-force", "--force"]).to_string()),
            ("previewKind", preview.to_owned()),
            ("optimiseStreams", args.flag(&["-os", "--optimise-streams"]).to_string()),
            (
                "ignoreUnreplicatedKeyspaces",
                args.flag(&["-iuk", "--ignore-unreplicated-keyspaces"]).to_string(),
            ),
            ("repairPaxos", (!skip_paxos && is_real).to_string()),
            ("paxosOnly", paxos_only.to_string()),
            (CENTERS, centers.join(",")),
            ("hosts", hosts.join(",")),
        ];
        options.extend(range(&start, &end).map(|range| ("ranges", range)));
        let in_local_center = args.flag(&["-local", "--in-local-dc"]);
        // what is left is no option
        let of = selection(args);
        options.push(("columnFamilies", of.tables.join(",")));
        let options = options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let leaves_primary_ranges = primary_range && !(centers.is_empty() && hosts.is_empty());
        Ok(Self { of, options, in_local_center, leaves_primary_ranges })
    }

    /// Does it ask for primary ranges of some nodes only? Ranges would stay that nobody repairs.
    pub(crate) fn leaves_primary_ranges(&self) -> bool {
        self.leaves_primary_ranges
    }

    /// Must it be known in which data center the node is?
    pub(crate) fn needs_local_center(&self) -> bool {
        self.in_local_center
    }

    /// What the node is asked for, of one keyspace.
    pub(crate) fn order(&self, keyspace: String, local_center: &str) -> RepairOrder {
        let mut options = self.options.clone();
        if self.in_local_center {
            options.insert(CENTERS.to_owned(), local_center.to_owned());
        }
        RepairOrder { keyspace, options }
    }
}

/// `Repair.getPreviewKind`
fn preview(args: &mut Args, is_full: bool) -> &'static str {
    let validate = args.flag(&["-vd", "--validate"]);
    match (validate, args.flag(&["-prv", "--preview"])) {
        (true, _) => "REPAIRED",
        (false, true) if is_full => "ALL",
        (false, true) => "UNREPAIRED",
        (false, false) => REAL,
    }
}

fn parallelism(args: &mut Args) -> &'static str {
    let sequential = args.flag(&["-seq", "--sequential"]);
    match (sequential, args.flag(&["-dcpar", "--dc-parallel"])) {
        (true, _) => "sequential",
        (false, true) => "dc_parallel",
        (false, false) => "parallel",
    }
}

/// `RepairAdmin.getRangeString`: one end may be missing, which the node then refuses.
fn range(start: &str, end: &str) -> Option<String> {
    (!start.is_empty() || !end.is_empty()).then(|| format!("{start}:{end}"))
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<RepairVerb>, VerbError> {
    match name {
        "repair" => repair(args).map(Some),
        "repair_admin" => admin(args).map(Some),
        _ => Ok(None),
    }
}

fn repair(args: &mut Args) -> Result<RepairVerb, VerbError> {
    if let Some(command) = args.titled(&["--watch"], "command")? {
        return match command.parse() {
            Ok(command) if command > 0 => Ok(RepairVerb::Watch { command }),
            _ => refused(format!("--watch must be the number of a repair command, not {command}")),
        };
    }
    Ok(RepairVerb::Repair(Box::new(RepairArguments::read(args)?)))
}

fn job_threads(args: &mut Args) -> Result<i32, VerbError> {
    let Some(text) = args.titled(&["-j", "--job-threads"], "job_threads")? else { return Ok(1) };
    match text.parse() {
        Ok(threads) => Ok(threads),
        Err(_) => refused(format!("job_threads: can not convert \"{text}\" to a int")),
    }
}

fn tokens(args: &mut Args) -> Result<(String, String), VerbError> {
    let start = args.titled(&["-st", "--start-token"], "start_token")?.unwrap_or_default();
    let end = args.titled(&["-et", "--end-token"], "end_token")?.unwrap_or_default();
    Ok((start, end))
}

/// Alone it lists; options need the word `list`.
fn admin(args: &mut Args) -> Result<RepairVerb, VerbError> {
    let Some(command) = args.take() else {
        return Ok(RepairVerb::Sessions { all: false, range: None });
    };
    Ok(match command.as_str() {
        "list" => {
            let all = args.flag(&["-a", "--all"]);
            let (start, end) = tokens(args)?;
            RepairVerb::Sessions { all, range: range(&start, &end) }
        }
        "cancel" => {
            let force = args.flag(&["-f", "--force"]);
            match args.titled(&["-s", "--session"], "session")? {
                Some(session) => RepairVerb::Cancel { session, force },
                None => return refused("Required option '-s' is missing"),
            }
        }
        "cleanup" => {
            let force = args.flag(&["-f", "--force"]);
            RepairVerb::CleanUp { scope: scope(args)?, force }
        }
        "summarize-pending" => {
            let verbose = args.flag(&["-v", "--verbose"]);
            RepairVerb::Pending { scope: scope(args)?, verbose }
        }
        "summarize-repaired" => {
            let verbose = args.flag(&["-v", "--verbose"]);
            RepairVerb::Repaired { scope: scope(args)?, verbose }
        }
        _ => return Err(VerbError::Unexpected([vec![command], args.rest()].concat())),
    })
}

fn scope(args: &mut Args) -> Result<RepairScope, VerbError> {
    let (start, end) = tokens(args)?;
    let Selection { keyspace, tables } = selection(args);
    Ok(RepairScope { keyspace, tables, range: range(&start, &end) })
}
