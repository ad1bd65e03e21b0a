//! Verbs of repair: `tools.nodetool.Repair` and `RepairAdmin`.

use std::collections::BTreeMap;

use super::args::Args;
use super::{Selection, VerbError, refused, selection};
use crate::model::{RepairOrder, RepairScope};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairArguments {
    /// What to repair.
    pub of: Selection,
    sequential: bool,
    parallel_centers: bool,
    local_center: bool,
    centers: Vec<String>,
    hosts: Vec<String>,
    start_token: String,
    end_token: String,
    primary_range: bool,
    full: bool,
    force: bool,
    preview: bool,
    validate: bool,
    job_threads: i32,
    trace: bool,
    pull: bool,
    optimise_streams: bool,
    skip_paxos: bool,
    paxos_only: bool,
    ignore_unreplicated: bool,
}

impl RepairArguments {
    /// Does it ask for primary ranges of some nodes only? Ranges would stay that nobody repairs.
    pub(crate) fn leaves_primary_ranges(&self) -> bool {
        self.primary_range && !(self.centers.is_empty() && self.hosts.is_empty())
    }

    /// Must it be known in which data center the node is?
    pub(crate) fn needs_local_center(&self) -> bool {
        self.local_center
    }

    /// What the node is asked for, of one keyspace, as `Repair.createOptions` has it.
    pub(crate) fn order(&self, keyspace: String, local_center: &str) -> RepairOrder {
        let preview = match (self.validate, self.preview, self.full) {
            (true, ..) => "REPAIRED",
            (false, true, true) => "ALL",
            (false, true, false) => "UNREPAIRED",
            (false, false, _) => "NONE",
        };
        let parallelism = match (self.sequential, self.parallel_centers) {
            (true, _) => "sequential",
            (false, true) => "dc_parallel",
            (false, false) => "parallel",
        };
        let is_real = preview == "NONE";
        let paxos_only = self.paxos_only && is_real;
        let centers = match self.local_center {
            true => local_center.to_owned(),
            false => self.centers.join(","),
        };
        let mut options = BTreeMap::from(
            [
                ("parallelism", parallelism.to_owned()),
                ("primaryRange", self.primary_range.to_string()),
                ("incremental", (!self.full && !paxos_only).to_string()),
                ("jobThreads", self.job_threads.to_string()),
                ("trace", self.trace.to_string()),
                ("columnFamilies", self.of.tables.join(",")),
                ("pullRepair", self.pull.to_string()),
                ("forceRepair", self.force.to_string()),
                ("previewKind", preview.to_owned()),
                ("optimiseStreams", self.optimise_streams.to_string()),
                ("ignoreUnreplicatedKeyspaces", self.ignore_unreplicated.to_string()),
                ("repairPaxos", (!self.skip_paxos && is_real).to_string()),
                ("paxosOnly", paxos_only.to_string()),
                ("dataCenters", centers),
                ("hosts", self.hosts.join(",")),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        if let Some(range) = range(&self.start_token, &self.end_token) {
            options.insert("ranges".to_owned(), range);
        }
        RepairOrder { keyspace, options }
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
    let mut of = RepairArguments {
        sequential: args.flag(&["-seq", "--sequential"]),
        parallel_centers: args.flag(&["-dcpar", "--dc-parallel"]),
        local_center: args.flag(&["-local", "--in-local-dc"]),
        centers: args.values(&["-dc", "--in-dc"], "specific_dc")?,
        hosts: args.values(&["-hosts", "--in-hosts"], "specific_host")?,
        primary_range: args.flag(&["-pr", "--partitioner-range"]),
        full: args.flag(&["-full", "--full"]),
        force: args.flag(&["-force", "--force"]),
        preview: args.flag(&["-prv", "--preview"]),
        validate: args.flag(&["-vd", "--validate"]),
        job_threads: job_threads(args)?,
        trace: args.flag(&["-tr", "--trace"]),
        pull: args.flag(&["-pl", "--pull"]),
        optimise_streams: args.flag(&["-os", "--optimise-streams"]),
        skip_paxos: args.flag(&["-skip-paxos", "--skip-paxos"]),
        paxos_only: args.flag(&["-paxos-only", "--paxos-only"]),
        ignore_unreplicated: args.flag(&["-iuk", "--ignore-unreplicated-keyspaces"]),
        ..RepairArguments::default()
    };
    (of.start_token, of.end_token) = tokens(args)?;
    of.of = selection(args);
    Ok(RepairVerb::Repair(Box::new(of)))
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
