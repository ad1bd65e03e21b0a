//! Verbs of the ring: `tools.nodetool.Status`, `Ring`, `DescribeRing`, `GossipInfo` and their kin.

use super::args::Args;
use super::{VerbError, refused};
use crate::model::{Failing, NewNodes, PlanChange, RebuildOrder, TableName};

/// Nodes and racks that fail at the same time in `plan failures`, if nobody says how many.
const FAILING: (u32, u32) = (3, 2);
/// And at most (`ring::FAILED_MAX`).
const FAILING_MAX: u32 = 8;

/// A verb of the ring; addresses are with ports where `print_port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingVerb {
    /// `status`: the nodes of the cluster.
    Status {
        /// Whose replication decides what a node owns.
        keyspace: Option<String>,
        /// Addresses with ports.
        print_port: bool,
    },
    /// `ring`: all tokens and their owners.
    Ring {
        /// Whose replication decides what a node owns.
        keyspace: Option<String>,
        /// Addresses with ports.
        print_port: bool,
    },
    /// `describering`: the ranges of a keyspace.
    DescribeRing {
        /// The keyspace.
        keyspace: String,
        /// Addresses with ports.
        print_port: bool,
    },
    /// `describecluster`: name, partitioner, schema versions, keyspaces.
    DescribeCluster {
        /// Addresses with ports.
        print_port: bool,
    },
    /// `getendpoints`: the nodes that have a partition.
    GetEndpoints {
        /// The table.
        table: TableName,
        /// The partition's key.
        key: String,
        /// With ports.
        print_port: bool,
    },
    /// `gossipinfo`
    GossipInfo {
        /// With ports.
        print_port: bool,
    },
    /// `failuredetector`
    FailureDetector {
        /// With ports.
        print_port: bool,
    },
    /// `statusgossip`
    StatusGossip,
    /// `enablegossip`, or `disablegossip`
    SetGossip(bool),
    /// `getseeds`
    GetSeeds,
    /// `reloadseeds`
    ReloadSeeds,
    /// `rebuild`
    Rebuild(RebuildOrder),
    /// `bootstrap resume`
    ResumeBootstrap {
        /// Is it meant? Who writes past this node meanwhile is for the operator to know.
        force: bool,
    },
    /// `join`
    Join,
    /// `decommission`
    Decommission {
        /// Even if a keyspace has fewer replicas then.
        force: bool,
    },
    /// `move`
    Move {
        /// Where to.
        token: String,
    },
    /// `plan`, but for `plan failures`
    Plan(PlanChange),
    /// `plan failures`
    PlanFailures(Failing),
    /// `removenode ID`
    RemoveNode {
        /// Its host id.
        host: String,
    },
    /// `removenode status`, or `removenode force`
    Removal {
        /// Is it ended without waiting?
        force: bool,
    },
    /// `assassinate`
    Assassinate {
        /// The node.
        address: String,
    },
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<RingVerb>, VerbError> {
    let print_port = args.print_port;
    Ok(Some(match name {
        "assassinate" => match args.take() {
            Some(address) => RingVerb::Assassinate { address },
            None => return refused("Required parameters are missing: ip address"),
        },
        "bootstrap" => match args.take().as_deref() {
            Some("resume") => RingVerb::ResumeBootstrap { force: args.flag(&["-f", "--force"]) },
            // the help, as of every group of verbs
            None => return Err(VerbError::Nothing),
            Some(other) => return Err(VerbError::Unexpected(vec![other.to_owned()])),
        },
        "decommission" => RingVerb::Decommission { force: args.flag(&["-f", "--force"]) },
        "describecluster" => RingVerb::DescribeCluster { print_port },
        "describering" => match args.take() {
            Some(keyspace) => RingVerb::DescribeRing { keyspace, print_port },
            None => return refused("Required parameters are missing: keyspace"),
        },
        "disablegossip" => RingVerb::SetGossip(false),
        "enablegossip" => RingVerb::SetGossip(true),
        "failuredetector" => RingVerb::FailureDetector { print_port },
        "getendpoints" => match (args.take(), args.take(), args.take()) {
            (Some(keyspace), Some(table), Some(key)) => {
                RingVerb::GetEndpoints { table: TableName { keyspace, table }, key, print_port }
            }
            _ => {
                return refused(
                    "getendpoints requires keyspace, table and partition key arguments",
                );
            }
        },
        "getseeds" => RingVerb::GetSeeds,
        "gossipinfo" => {
            args.not_served(&["-r", "--resolve-ip"])?;
            RingVerb::GossipInfo { print_port }
        }
        "join" => RingVerb::Join,
        "move" => match args.take() {
            Some(token) => RingVerb::Move { token },
            None => return refused("Required parameters are missing: newToken"),
        },
        "plan" => plan(args)?,
        "rebuild" => rebuild(args)?,
        "reloadseeds" => RingVerb::ReloadSeeds,
        "removenode" => match args.take().as_deref() {
            None => return refused("Required parameters are missing: remove_operation"),
            Some("status") => RingVerb::Removal { force: false },
            Some("force") => RingVerb::Removal { force: true },
            Some(host) => RingVerb::RemoveNode { host: host.to_owned() },
        },
        "ring" => {
            args.not_served(&["-r", "--resolve-ip"])?;
            RingVerb::Ring { keyspace: args.take(), print_port }
        }
        "status" => {
            args.not_served(&["-r", "--resolve-ip"])?;
            RingVerb::Status { keyspace: args.take(), print_port }
        }
        "statusgossip" => RingVerb::StatusGossip,
        _ => return Ok(None),
    }))
}

fn plan(args: &mut Args) -> Result<RingVerb, VerbError> {
    let change = match args.take().as_deref() {
        Some("add") => PlanChange::Add(NewNodes {
            count: count(args, "--nodes", u32::MAX)?.unwrap_or(1),
            data_center: args.value(&["--dc"])?,
            rack: args.value(&["--rack"])?,
            num_tokens: count(args, "--tokens", u32::MAX)?,
        }),
        Some("decommission") => PlanChange::Decommission { node: args.take() },
        Some("removenode") => match args.take() {
            Some(host) => PlanChange::RemoveNode { host },
            None => return refused("Required parameters are missing: ID"),
        },
        Some("move") => match args.take() {
            Some(token) => PlanChange::Move { token },
            None => return refused("Required parameters are missing: new token"),
        },
        Some("failures") => {
            return Ok(RingVerb::PlanFailures(Failing {
                nodes: count(args, "--nodes", FAILING_MAX)?.unwrap_or(FAILING.0),
                racks: count(args, "--racks", FAILING_MAX)?.unwrap_or(FAILING.1),
                num_tokens: count(args, "--tokens", u32::MAX)?,
            }));
        }
        _ => {
            return refused(
                "plan needs one of: add, decommission, removenode, move, failures; see nodetool \
                 help plan",
            );
        }
    };
    Ok(RingVerb::Plan(change))
}

/// The number of an option, from 1 on.
fn count(args: &mut Args, name: &'static str, most: u32) -> Result<Option<u32>, VerbError> {
    let Some(text) = args.value(&[name])? else { return Ok(None) };
    match text.parse() {
        Ok(count) if (1..=most).contains(&count) => Ok(Some(count)),
        _ if most == u32::MAX => refused(format!("{name} must be a number from 1 on, not {text}")),
        _ => refused(format!("{name} must be a number from 1 to {most}, not {text}")),
    }
}

fn rebuild(args: &mut Args) -> Result<RingVerb, VerbError> {
    let order = RebuildOrder {
        keyspace: args.value(&["-ks", "--keyspace"])?,
        tokens: args.value(&["-ts", "--tokens"])?,
        sources: args.value(&["-s", "--sources"])?,
        excludes_local_center: args.flag(&["--exclude-local-dc"]),
        from_center: args.take(),
    };
    if order.keyspace.is_none() && order.tokens.is_some() {
        return refused("Cannot specify tokens without keyspace.");
    }
    Ok(RingVerb::Rebuild(order))
}
