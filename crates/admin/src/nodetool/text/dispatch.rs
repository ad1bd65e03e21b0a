//! Which text is that of a verb and its value.

use super::{
    access, cluster, compaction, gossip, hints, histograms, info, io, logging, network, plan,
    repair, request_logs, ring, samples, snapshots, status, streams, table_tree, tables,
};
use crate::model::{Decommission, ExcessJobs, Shown};
use crate::nodetool::guardrails;
use crate::nodetool::reply::Reply;
use crate::nodetool::verb::{
    AccessVerb, CompactionVerb, HintsVerb, NetworkVerb, NodeVerb, RepairVerb, RequestLogsVerb,
    RingVerb, SSTablesVerb, SamplesVerb, SettingsVerb, SnapshotsVerb, TablesVerb, Verb,
};

const QUIET_MEGABITS: &str =
    "Use the -d flag to quiet this error and get the exact throughput in megabits/s";
const QUIET: &str = "Use the -d flag to quiet this error and get the exact throughput in MiB/s";

/// What is printed of what a verb shows, be it nothing; none where that is not what the verb shows.
pub(in crate::nodetool) fn print(verb: &Verb, shown: Option<&Shown>) -> Option<Reply> {
    let text = match verb {
        Verb::Access(verb) => of_access(*verb, shown),
        Verb::Caches(_) => nothing(shown),
        Verb::Compaction(verb) => return of_compaction(verb, shown),
        Verb::Hints(verb) => of_hints(verb, shown),
        Verb::Network(verb) => return of_network(*verb, shown),
        Verb::Node(NodeVerb::Doctor { json }) => return of_doctor(*json, shown),
        Verb::Node(verb) => of_node(verb, shown),
        Verb::Repair(verb) => of_repair(verb, shown),
        Verb::RequestLogs(verb) => of_request_logs(verb, shown),
        Verb::Ring(verb) => of_ring(verb, shown),
        Verb::Samples(verb) => of_samples(verb, shown),
        Verb::Settings(verb) => of_settings(verb, shown),
        Verb::Snapshots(verb) => of_snapshots(verb, shown),
        Verb::SSTables(verb) => return of_sstables(verb, shown),
        Verb::Tables(verb) => of_tables(verb, shown),
    };
    text.map(Reply::ok)
}

fn nothing(shown: Option<&Shown>) -> Option<String> {
    shown.is_none().then(String::new)
}

fn running(is_running: bool) -> String {
    if is_running { "running\n" } else { "not running\n" }.to_owned()
}

fn of_access(verb: AccessVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (AccessVerb::Clients { all, options }, Some(Shown::Clients(of))) => {
            access::clients(of, all, options)
        }
        (AccessVerb::RecentClients, Some(Shown::RecentClients(of))) => access::recent(of),
        (AccessVerb::GetAuthCache(_), Some(Shown::AuthCache(of))) => access::auth_cache(of),
        (AccessVerb::SetAuthCache(_, change), None) => access::changed(&change),
        (AccessVerb::ForgetRecentClients, None) => "Clearing connection history\n".to_owned(),
        _ => return nothing(shown),
    })
}

/// As `helenus doctor`: exit code 1 if anything is serious.
fn of_doctor(json: bool, shown: Option<&Shown>) -> Option<Reply> {
    let Some(Shown::Doctor(report)) = shown else { return nothing(shown).map(Reply::ok) };
    let out = if json { report.json() + "\n" } else { report.to_string() };
    Some(Reply { out, err: String::new(), exit: report.is_serious().into() })
}

fn of_node(verb: &NodeVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (NodeVerb::Version { verbose }, Some(Shown::Release(of))) => match verbose {
            true => format!("ReleaseVersion: {}\nGitSHA: {}\n", of.version, of.git_sha),
            false => format!("ReleaseVersion: {}\n", of.version),
        },
        (NodeVerb::Info { tokens }, Some(Shown::Node(of))) => info::print(of, *tokens),
        (NodeVerb::IoStats { json, .. }, Some(Shown::Io(of))) => match json {
            true => io::json(of),
            false => io::print(of),
        },
        (NodeVerb::StatusBinary, Some(Shown::NativeTransport { running: is })) => running(*is),
        (NodeVerb::StopDaemon, None) => "Cassandra has shutdown.\n".to_owned(),
        _ => return nothing(shown),
    })
}

fn of_ring(verb: &RingVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (RingVerb::Status { print_port, .. }, Some(Shown::Ring(of))) => {
            status::print(of, *print_port)
        }
        (RingVerb::Ring { print_port, .. }, Some(Shown::Ring(of))) => ring::print(of, *print_port),
        (RingVerb::DescribeRing { print_port, .. }, Some(Shown::Ranges(of))) => {
            ring::ranges(of, *print_port)
        }
        (RingVerb::DescribeCluster { print_port }, Some(Shown::Cluster(of))) => {
            cluster::print(of, *print_port)
        }
        (RingVerb::GetEndpoints { print_port, .. }, Some(Shown::Endpoints(of))) => {
            gossip::endpoints(of, *print_port)
        }
        (RingVerb::GossipInfo { print_port }, Some(Shown::Gossip(of))) => {
            gossip::info(of, *print_port)
        }
        (RingVerb::FailureDetector { print_port }, Some(Shown::Gossip(of))) => {
            gossip::detector(of, *print_port)
        }
        (RingVerb::StatusGossip, Some(Shown::GossipStatus { running: is })) => running(*is),
        (RingVerb::GetSeeds, Some(Shown::Seeds(of))) => gossip::seeds(of),
        (RingVerb::ResumeBootstrap { .. }, Some(Shown::ResumedBootstrap { resumed })) => {
            match resumed {
                true => "Resuming bootstrap\nResume bootstrap complete\n".to_owned(),
                false => "Node is already bootstrapped.\n".to_owned(),
            }
        }
        (RingVerb::Plan(_), Some(Shown::Plan(of))) => plan::print(of),
        (RingVerb::PlanFailures(_), Some(Shown::FailurePlan(of))) => plan::failures(of),
        (RingVerb::Removal { .. }, Some(Shown::Removal { status })) => {
            format!("RemovalStatus: {status}\n")
        }
        (RingVerb::Decommission { .. }, Some(Shown::Decommission(of))) => match of {
            Decommission::Done => String::new(),
            Decommission::UnderWay => "This node is still decommissioning.\n".to_owned(),
            Decommission::Before => "Node was already decommissioned.\n".to_owned(),
        },
        (RingVerb::ReloadSeeds, Some(Shown::ReloadedSeeds(of))) => gossip::reloaded(of.as_deref()),
        _ => return nothing(shown),
    })
}

fn of_repair(verb: &RepairVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (RepairVerb::Repair(_) | RepairVerb::Watch { .. }, Some(Shown::Repairs(of))) => {
            repair::watched(of)
        }
        (RepairVerb::Sessions { .. }, Some(Shown::RepairSessions(of))) => repair::sessions(of),
        (RepairVerb::CleanUp { .. }, Some(Shown::RepairCleanups(of))) => repair::cleanup(of),
        (RepairVerb::Pending { verbose, .. }, Some(Shown::PendingRepairs(of))) => {
            repair::pending(of, *verbose)
        }
        (RepairVerb::Repaired { verbose, .. }, Some(Shown::RepairStats(of))) => {
            repair::repaired(of, *verbose)
        }
        _ => return nothing(shown),
    })
}

fn of_network(verb: NetworkVerb, shown: Option<&Shown>) -> Option<Reply> {
    Some(Reply::ok(match (verb, shown) {
        (NetworkVerb::PoolStats { format }, Some(Shown::Pools(of))) => match format {
            Some(format) => network::tpstats_tree(of).print(format),
            None => network::tpstats(of),
        },
        (NetworkVerb::NetStats { human_readable, print_port }, Some(Shown::Network(of))) => {
            network::netstats(of, human_readable, print_port)
        }
        (NetworkVerb::GetStreamLimit { of: which, unit }, Some(Shown::StreamLimits(of))) => {
            match streams::limit(of, which, unit) {
                Some(text) => text,
                None => return Some(Reply::failed(format!("error: {QUIET_MEGABITS}\n"))),
            }
        }
        (NetworkVerb::ProxyHistograms, Some(Shown::ProxyHistograms(of))) => network::histograms(of),
        _ => return nothing(shown).map(Reply::ok),
    }))
}

fn of_hints(verb: &HintsVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (HintsVerb::StatusHandoff, Some(Shown::Handoff(of))) => hints::status(of),
        (HintsVerb::GetMaxHintWindow, Some(Shown::Handoff(of))) => hints::window(of),
        (HintsVerb::ListPendingHints { print_port }, Some(Shown::PendingHints(of))) => {
            hints::pending(of, *print_port)
        }
        _ => return nothing(shown),
    })
}

fn of_compaction(verb: &CompactionVerb, shown: Option<&Shown>) -> Option<Reply> {
    let text = match (verb, shown) {
        (CompactionVerb::History { format }, Some(Shown::CompactionHistory(of))) => match format {
            Some(format) => compaction::history_tree(of).print(*format),
            None => compaction::history(of),
        },
        (CompactionVerb::Stats { human_readable, vtable }, Some(Shown::Compactions(of))) => {
            compaction::print(of, *human_readable, *vtable)
        }
        (
            CompactionVerb::GetThroughput { precise },
            Some(Shown::CompactionThroughput { bytes_per_second }),
        ) => match compaction::throughput(*bytes_per_second, *precise) {
            Some(text) => text,
            None => return Some(Reply::failed(format!("error: {QUIET}\n"))),
        },
        (CompactionVerb::GetConcurrent, Some(Shown::ConcurrentCompactors(count))) => {
            format!("Current concurrent compactors in the system is: \n{count}\n")
        }
        (CompactionVerb::GetThreshold(of), Some(Shown::CompactionThresholds(found))) => format!(
            "Current compaction thresholds for {}/{}: \n min = {},  max = {}\n",
            of.keyspace, of.table, found.min, found.max
        ),
        (CompactionVerb::StatusAuto { all, .. }, Some(Shown::AutoCompaction(of))) => {
            compaction::auto(of, *all)
        }
        _ => nothing(shown)?,
    };
    Some(Reply::ok(text))
}

fn of_sstables(verb: &SSTablesVerb, shown: Option<&Shown>) -> Option<Reply> {
    match (verb, shown) {
        (
            SSTablesVerb::Cleanup { .. }
            | SSTablesVerb::GarbageCollect { .. }
            | SSTablesVerb::Scrub { .. },
            Some(Shown::ExcessJobs(all)),
        ) => Some(Reply::ok(all.iter().map(excess_jobs).collect::<String>())),
        (SSTablesVerb::Import { .. }, Some(Shown::Import { refused_directories: refused })) => {
            match refused.is_empty() {
                true => Some(Reply::default()),
                false => Some(Reply {
                    out: String::new(),
                    err: format!(
                        "Some directories failed to import, check server logs for details:\n{}\n",
                        refused.join("\n")
                    ),
                    exit: 1,
                }),
            }
        }
        _ => nothing(shown).map(Reply::ok),
    }
}

fn excess_jobs(of: &ExcessJobs) -> String {
    let ExcessJobs { jobs, concurrent_compactors: most } = of;
    format!(
        "jobs ({jobs}) is bigger than configured concurrent_compactors ({most}) on the host, using at most {most} \
         threads\n"
    )
}

fn of_tables(verb: &TablesVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (TablesVerb::Stats { human_readable, sort, format, .. }, Some(Shown::TableStats(of))) => {
            let sort = sort.as_ref().map(|(key, top)| (key.as_str(), *top));
            match (format, sort) {
                (Some(format), _) => table_tree::stats(of, *human_readable, sort).print(*format),
                (None, Some((key, top))) => tables::print_sorted(of, *human_readable, key, top),
                (None, None) => tables::print(of, *human_readable),
            }
        }
        (TablesVerb::Histograms(_), Some(Shown::TableHistograms(of))) => {
            of.iter().map(histograms::print).collect()
        }
        (TablesVerb::DataPaths { format, .. }, Some(Shown::DataPaths(of))) => match format {
            Some(format) => tables::data_paths_tree(of).print(*format),
            None => tables::data_paths(of),
        },
        (TablesVerb::DataFiles { levels, .. }, Some(Shown::DataFiles(of))) => {
            tables::data_files(of, *levels)
        }
        _ => return nothing(shown),
    })
}

fn of_snapshots(verb: &SnapshotsVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (
            SnapshotsVerb::Snapshot { label, flush, ttl_text, .. },
            Some(Shown::Snapshot { name, taken }),
        ) => {
            // what it asks for is said before it is refused
            let said = snapshots::requested(label, name, *flush, ttl_text.as_deref());
            match taken {
                true => format!("{said}Snapshot directory: {name}\n"),
                false => said,
            }
        }
        (SnapshotsVerb::List { ephemeral, .. }, Some(Shown::Snapshots(of))) => {
            snapshots::list(of, *ephemeral)
        }
        (SnapshotsVerb::Clear { keyspaces, name, older_than, before_text, .. }, None) => {
            snapshots::clearing(keyspaces, name.as_deref(), *older_than, before_text.as_deref())
        }
        (SnapshotsVerb::StatusBackup, Some(Shown::Backups { kept })) => running(*kept),
        _ => return nothing(shown),
    })
}

fn of_request_logs(verb: &RequestLogsVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (RequestLogsVerb::Audit | RequestLogsVerb::Queries, Some(Shown::RequestLog(of))) => {
            request_logs::options(of)
        }
        _ => return nothing(shown),
    })
}

fn of_samples(verb: &SamplesVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (SamplesVerb::Sample(_), Some(Shown::Samples(of))) => samples::found(of) + "\n",
        (SamplesVerb::Schedule { order, .. }, Some(Shown::SamplingSchedule { done })) => {
            samples::unscheduled(&order.of, *done)
        }
        (SamplesVerb::Stop(of), Some(Shown::SamplingSchedule { done })) => {
            samples::unstopped(of, *done)
        }
        (SamplesVerb::List, Some(Shown::Samplings(of))) => samples::list(of),
        (SamplesVerb::KeyRange, Some(Shown::SampledKeys(of))) => samples::keys(of),
        _ => return nothing(shown),
    })
}

fn of_settings(verb: &SettingsVerb, shown: Option<&Shown>) -> Option<String> {
    Some(match (verb, shown) {
        (SettingsVerb::GetTimeout(_), Some(Shown::Timeout { timeout, millis })) => {
            format!("Current timeout for type {timeout}: {millis} ms\n")
        }
        (SettingsVerb::GetTraceProbability, Some(Shown::TraceProbability { share })) => {
            format!("Current trace probability: {share:?}\n")
        }
        (SettingsVerb::GetLoggingLevels, Some(Shown::LoggingLevels(of))) => logging::levels(of),
        (SettingsVerb::SetLoggingLevel { .. }, Some(Shown::UnheardLoggers(of))) => {
            logging::unheard(of)
        }
        (SettingsVerb::GetColumnIndexSize, Some(Shown::ColumnIndexSize { kibibytes })) => {
            let kibibytes = kibibytes.map_or("-1".to_owned(), |size| size.to_string());
            format!("Current value for column_index_size: {kibibytes} KiB\n")
        }
        (SettingsVerb::GetDefaultReplication, Some(Shown::DefaultReplication { factor })) => {
            format!("{factor}\n")
        }
        // no limit, as Cassandra prints it
        (SettingsVerb::GetSnapshotThrottle, None) => {
            format!("Current snapshot throttle: {} links/s\n", i64::MAX)
        }
        (SettingsVerb::GetGuardrails(filter), Some(Shown::Guardrails(of))) => {
            guardrails::print(of, filter)
        }
        _ => return nothing(shown),
    })
}
