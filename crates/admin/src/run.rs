//! Verbs carried out: facts from the [`Operator`], text as nodetool prints it.

use env::Env;

use crate::guardrails;
use crate::operator::{Answer, CacheName, NewSnapshot, Operator, OperatorError, TableName};
use crate::output::{
    cluster, compaction, gossip, hints, histograms, info, io, network, ring, snapshots, status,
    tables,
};
use crate::verb::{Selection, TableFilter, Verb, bad_use, check_snapshot};

const MICROS_PER_MILLI: i64 = 1000;
const MEBIBYTE: u64 = 1 << 20;
const IO_WINDOWS_PER_SECOND: u64 = 1000 / env::IO_WINDOW.as_millis() as u64;
/// Every node has its own.
const LOCAL_KEYSPACES: [&str; 2] = ["system", "system_schema"];

/// What a verb said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
    /// 0, or 1 for bad use, or 2 for failure.
    pub exit: u8,
}

impl Reply {
    fn ok(out: impl Into<String>) -> Self {
        Self { out: out.into(), ..Self::default() }
    }

    /// A failure with its text for standard error.
    pub(crate) fn failed(err: String) -> Self {
        Self { out: String::new(), err, exit: 2 }
    }
}

impl From<OperatorError> for Reply {
    /// As `NodeTool.badUse` and `NodeTool.err`, without a stack trace.
    fn from(e: OperatorError) -> Self {
        match e {
            OperatorError::BadUse(message) => {
                Self { out: bad_use(&message), err: String::new(), exit: 1 }
            }
            OperatorError::Failed(message) => Self::failed(format!("error: {message}\n")),
        }
    }
}

/// Carries out a verb.
pub async fn run<O: Operator>(env: &Env, operator: &O, verb: Verb) -> Reply {
    match verb {
        // Cassandra prints this one by itself.
        Verb::Status { keyspace, print_port } => match operator.ring(keyspace.as_deref()).await {
            Ok(ring) => Reply::ok(status::print(&ring, print_port)),
            Err(OperatorError::BadUse(message)) => {
                Reply { out: format!("\nError: {message}\n"), err: String::new(), exit: 1 }
            }
            Err(e) => e.into(),
        },
        Verb::Ring { keyspace, print_port } => match operator.ring(keyspace.as_deref()).await {
            Ok(ring) => Reply::ok(ring::print(&ring, print_port)),
            Err(OperatorError::BadUse(message)) => {
                Reply { out: format!("\nError: {message}\n"), err: String::new(), exit: 1 }
            }
            Err(e) => e.into(),
        },
        // The version is said before the keyspace is looked for.
        Verb::DescribeRing { keyspace, print_port } => match operator.ranges(&keyspace).await {
            Ok(found) => {
                let said = ring::describing(&found.schema_version);
                match found.ranges.map_err(Reply::from) {
                    Ok(ranges) => Reply::ok(said + &ring::ranges(&ranges, print_port)),
                    Err(reply) => Reply { out: said + &reply.out, ..reply },
                }
            }
            Err(e) => e.into(),
        },
        // What it asks for is said before it is refused.
        Verb::Snapshot { of, label, name, flush, ttl, ttl_text } => {
            let now = || (env.unix_micros() / MICROS_PER_MILLI).to_string();
            let name = name.unwrap_or_else(now);
            let said = snapshots::requested(&label, &name, flush, ttl_text.as_deref());
            let taken = match check_snapshot(&name, ttl) {
                Ok(()) => {
                    operator.snapshot(NewSnapshot { of, name: name.clone(), flush, ttl }).await
                }
                Err(e) => Err(e),
            };
            match taken.map_err(Reply::from) {
                Ok(()) => Reply::ok(format!("{said}Snapshot directory: {name}\n")),
                Err(reply) => Reply { out: said + &reply.out, ..reply },
            }
        }
        Verb::Import { import, quick } => {
            let said = match quick {
                true => {
                    "Doing a quick import - skipping sstable verification and row cache invalidation\n"
                }
                false => "",
            };
            match operator.import(import).await {
                Ok(refused) if refused.is_empty() => Reply::ok(said),
                Ok(refused) => Reply {
                    out: said.to_owned(),
                    err: format!(
                        "Some directories failed to import, check server logs for details:\n{}\n",
                        refused.join("\n")
                    ),
                    exit: 1,
                },
                Err(error) => {
                    let reply = Reply::from(error);
                    Reply { out: said.to_owned() + &reply.out, ..reply }
                }
            }
        }
        // What is said of it comes before anything that may fail.
        Verb::Refresh(words) => {
            let said = "nodetool refresh is deprecated, use nodetool import instead\n";
            let done = match <[String; 2]>::try_from(words) {
                Ok([keyspace, table]) => operator.refresh(&TableName { keyspace, table }).await,
                Err(_) => Err(OperatorError::BadUse("refresh requires ks and cf args".to_owned())),
            };
            match done.map_err(Reply::from) {
                Ok(()) => Reply::ok(said),
                Err(reply) => Reply { out: said.to_owned() + &reply.out, ..reply },
            }
        }
        Verb::GetCompactionThreshold(of) => match operator.thresholds(&of).await {
            Ok(Some((min, max))) => Reply::ok(format!(
                "Current compaction thresholds for {}/{}: \n min = {min},  max = {max}\n",
                of.keyspace, of.table
            )),
            Ok(None) => no_store(&of),
            Err(error) => error.into(),
        },
        Verb::SetCompactionThreshold { of, min, max } => {
            match operator.set_thresholds(&of, (min, max)).await {
                Ok(true) => Reply::default(),
                Ok(false) => no_store(&of),
                Err(error) => error.into(),
            }
        }
        verb => text(env, operator, verb).await.map_or_else(Reply::from, Reply::ok),
    }
}

/// What nodetool says of a table that is none, and ends.
fn no_store(of: &TableName) -> Reply {
    let err = format!("ColumnFamilyStore for {}/{} not found.\n", of.keyspace, of.table);
    Reply { out: String::new(), err, exit: 1 }
}

async fn text<O: Operator>(env: &Env, operator: &O, verb: Verb) -> Answer<String> {
    match verb {
        Verb::Cleanup { of, jobs } => {
            let mut said = String::new();
            let is_shared = |keyspace: &String| !LOCAL_KEYSPACES.contains(&keyspace.as_str());
            for keyspace in keyspaces(operator, &of).await?.into_iter().filter(is_shared) {
                said.push_str(&too_many(operator, jobs).await?);
                operator.cleanup(&keyspace, &of.tables).await?;
            }
            return Ok(said);
        }
        Verb::ClearSnapshot { keyspaces, name, older_than, before, before_text } => {
            let now = env.unix_micros() / MICROS_PER_MILLI;
            let since = older_than.map(|seconds| {
                now.saturating_sub(
                    i64::try_from(seconds).map_or(i64::MAX, |s| s.saturating_mul(1000)),
                )
            });
            operator.clear_snapshots(&keyspaces, name.as_deref(), before.or(since)).await?;
            let name = name.as_deref();
            return Ok(snapshots::clearing(&keyspaces, name, older_than, before_text.as_deref()));
        }
        Verb::Compact { of, split } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.compact(&keyspace, &of.tables, split).await?;
            }
        }
        Verb::CompactFiles(files) => operator.compact_files(&files).await?,
        Verb::CompactionHistory => {
            return Ok(compaction::history(&operator.compaction_history().await?));
        }
        Verb::CompactionStats { human_readable, vtable } => {
            let stats = operator.compaction_stats().await?;
            return Ok(compaction::print(&stats, human_readable, vtable));
        }
        Verb::DataPaths(names) => return data_paths(operator, names).await,
        Verb::StatusHandoff => return Ok(hints::status(&operator.handoff().await?)),
        Verb::GetMaxHintWindow => return Ok(hints::window(&operator.handoff().await?)),
        Verb::SetHandoff(change) => operator.set_handoff(change).await?,
        Verb::PauseHandoff(is_paused) => operator.pause_handoff(is_paused).await?,
        Verb::ListPendingHints { print_port } => {
            return Ok(hints::pending(&operator.pending_hints().await?, print_port));
        }
        Verb::TruncateHints(address) => operator.truncate_hints(address.as_deref()).await?,
        Verb::Assassinate { address } => operator.assassinate(&address).await?,
        Verb::FailureDetector { print_port } => {
            return Ok(gossip::detector(&operator.gossip().await?, print_port));
        }
        Verb::GetEndpoints { table, key, print_port } => {
            let endpoints = operator.endpoints(&table, &key).await?;
            return Ok(gossip::endpoints(&endpoints, print_port));
        }
        Verb::SetGossip(takes_part) => operator.set_gossip(takes_part).await?,
        Verb::ReloadSeeds => {
            return Ok(gossip::reloaded(operator.reload_seeds().await?.as_deref()));
        }
        Verb::PoolStats => return Ok(network::tpstats(&operator.pool_stats().await?)),
        Verb::NetStats => return Ok(network::netstats(&operator.net_stats().await?)),
        Verb::ProxyHistograms => {
            return Ok(network::histograms(&operator.proxy_histograms().await?));
        }
        Verb::GetSeeds => return Ok(gossip::seeds(&operator.seeds().await?)),
        Verb::GossipInfo { print_port } => {
            return Ok(gossip::info(&operator.gossip().await?, print_port));
        }
        Verb::StatusGossip => {
            let is_active = operator.node().await?.gossip_active;
            return Ok(if is_active { "running\n" } else { "not running\n" }.to_owned());
        }
        Verb::DescribeCluster { print_port } => {
            let facts = operator.cluster().await?;
            let ring = operator.ring(None).await?;
            let keyspaces = operator.keyspaces().await?;
            return Ok(cluster::print(&facts, &ring, &keyspaces, print_port));
        }
        Verb::DisableBackup => operator.set_backups(false).await?,
        Verb::DisableBinary { force } => operator.stop_native_transport(force).await?,
        Verb::Drain => operator.drain().await?,
        Verb::EnableBackup => operator.set_backups(true).await?,
        Verb::EnableBinary => operator.start_native_transport().await?,
        Verb::Flush(selection) => {
            for keyspace in keyspaces(operator, &selection).await? {
                operator.flush(&keyspace, &selection.tables).await?;
            }
        }
        Verb::GarbageCollect { of, cells, jobs } => {
            let mut said = String::new();
            for keyspace in keyspaces(operator, &of).await? {
                said.push_str(&too_many(operator, jobs).await?);
                operator.garbage_collect(&keyspace, &of.tables, cells).await?;
            }
            return Ok(said);
        }
        Verb::GetGuardrails(shown) => {
            return guardrails::print(&operator.settings().await?, &shown);
        }
        Verb::GetCompactionThroughput { precise } => {
            let rate = operator.compaction_throughput().await?;
            let quiet = "Use the -d flag to quiet this error and get the exact throughput in MiB/s";
            let text = compaction::throughput(rate, precise);
            return text.ok_or_else(|| OperatorError::Failed(quiet.to_owned()));
        }
        Verb::GetConcurrentCompactors => {
            let count = operator.concurrent_compactors().await?;
            return Ok(format!("Current concurrent compactors in the system is: \n{count}\n"));
        }
        Verb::GetTimeout(timeout) => {
            let millis = operator.timeout(timeout).await?;
            return Ok(format!("Current timeout for type {timeout}: {millis} ms\n"));
        }
        Verb::GetTraceProbability => {
            let share = operator.trace_probability().await?;
            return Ok(format!("Current trace probability: {share:?}\n"));
        }
        Verb::Info { tokens } => return Ok(info::print(&operator.node().await?, tokens)),
        Verb::IoStats { seconds, json, windows } => {
            let stats = operator.io_stats(seconds.saturating_mul(IO_WINDOWS_PER_SECOND)).await?;
            return Ok(if json { io::json(&stats, windows) } else { io::print(&stats) });
        }
        Verb::ListSnapshots { ttl, ephemeral } => {
            let mut found = operator.snapshots().await?;
            found.retain(|of| (ttl || of.expires_at.is_none()) && (ephemeral || !of.ephemeral));
            return Ok(snapshots::list(&found, ephemeral));
        }
        Verb::RefreshSizeEstimates => operator.refresh_size_estimates().await?,
        Verb::RelocateSSTables(of) => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.relocate(&keyspace, &of.tables).await?;
            }
        }
        Verb::Scrub { of, how, jobs } => {
            let mut said = String::new();
            for keyspace in keyspaces(operator, &of).await? {
                said.push_str(&too_many(operator, jobs).await?);
                operator.scrub(&keyspace, &of.tables, how).await?;
            }
            return Ok(said);
        }
        Verb::SSTables { of, key, hex, levels } => {
            let line = |(level, file): (Option<usize>, String)| match level.filter(|_| levels) {
                Some(level) => format!("{level}: {file}\n"),
                None => format!("{file}\n"),
            };
            return Ok(operator.sstables_of(&of, &key, hex).await?.into_iter().map(line).collect());
        }
        Verb::SetAutoCompaction { of, enabled } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.set_autocompaction(&keyspace, &of.tables, enabled).await?;
            }
        }
        Verb::SetCompactionThroughput { mebibytes } => {
            operator.set_compaction_throughput(mebibytes.saturating_mul(MEBIBYTE)).await?;
        }
        Verb::InvalidateCache(cache) => operator.invalidate_cache(cache).await?,
        Verb::SetCacheCapacity { keys, rows, counters } => {
            let all =
                [(CacheName::Keys, keys), (CacheName::Rows, rows), (CacheName::Counters, counters)];
            for (cache, mebibytes) in all {
                let Ok(mebibytes) = u64::try_from(mebibytes) else {
                    let why = "capacity should not be negative.";
                    return Err(OperatorError::Failed(why.to_owned()));
                };
                operator.set_cache_capacity(cache, mebibytes.saturating_mul(MEBIBYTE)).await?;
            }
        }
        Verb::SetCacheKeysToSave { keys, rows, counters } => {
            for (cache, name, most) in [
                (CacheName::Keys, "Key", keys),
                (CacheName::Rows, "Row", rows),
                (CacheName::Counters, "Counter", counters),
            ] {
                let Ok(most) = u32::try_from(most) else {
                    let why = format!("{name}CacheKeysToSave must be non-negative.");
                    return Err(OperatorError::Failed(why));
                };
                operator.set_cache_keys_to_save(cache, most).await?;
            }
        }
        Verb::SetConcurrentCompactors(count) => operator.set_concurrent_compactors(count).await?,
        // Those that are carried out above.
        Verb::Import { .. }
        | Verb::Snapshot { .. }
        | Verb::Refresh(_)
        | Verb::Ring { .. }
        | Verb::DescribeRing { .. }
        | Verb::GetCompactionThreshold(_)
        | Verb::SetCompactionThreshold { .. } => {}
        Verb::SetGuardrails(arguments) => {
            let settings = guardrails::settings(&arguments)?;
            let set = operator.set_guardrails(&settings).await;
            set.map_err(|refusal| guardrails::not_set(&arguments, refusal))?;
        }
        Verb::SetTimeout { timeout, millis } => operator.set_timeout(timeout, millis).await?,
        Verb::SetTraceProbability(share) => operator.set_trace_probability(share.0).await?,
        Verb::Status { keyspace, print_port } => {
            return Ok(status::print(&operator.ring(keyspace.as_deref()).await?, print_port));
        }
        Verb::StatusAutoCompaction { of, all } => {
            let mut states = Vec::new();
            for keyspace in keyspaces(operator, &of).await? {
                for (table, enabled) in operator.autocompaction(&keyspace, &of.tables).await? {
                    states.push((keyspace.clone(), table, enabled));
                }
            }
            return Ok(compaction::auto(&states, all));
        }
        Verb::Stop(which) => operator.stop_compactions(which).await?,
        Verb::StatusBackup => {
            let kept = operator.backups().await?;
            return Ok(if kept { "running\n" } else { "not running\n" }.to_owned());
        }
        Verb::StatusBinary => {
            let running = operator.native_transport().await?;
            return Ok(if running { "running\n" } else { "not running\n" }.to_owned());
        }
        Verb::StopDaemon => {
            operator.stop_daemon().await?;
            return Ok("Cassandra has shutdown.\n".to_owned());
        }
        Verb::TableHistograms(of) => {
            let found = operator.histograms(of.as_ref()).await?;
            return Ok(found.iter().map(histograms::print).collect());
        }
        Verb::TableStats { filter, human_readable } => {
            return table_stats(env, operator, &filter, human_readable).await;
        }
        Verb::UpgradeSSTables { of, all } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.upgrade(&keyspace, &of.tables, all).await?;
            }
        }
        Verb::Verify { of, how } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.verify(&keyspace, &of.tables, how).await?;
            }
        }
        Verb::Version { verbose } => {
            let release = operator.release().await?;
            let mut text = format!("ReleaseVersion: {}\n", release.version);
            if verbose {
                text.push_str(&format!("GitSHA: {}\n", release.git_sha));
            }
            return Ok(text);
        }
    }
    Ok(String::new())
}

/// What is said where more is to be done at a time than can be.
async fn too_many<O: Operator>(operator: &O, jobs: i64) -> Answer<String> {
    let most = operator.concurrent_compactors().await?;
    Ok(match u64::try_from(jobs).is_ok_and(|jobs| jobs > most) {
        true => format!(
            "jobs ({jobs}) is bigger than configured concurrent_compactors ({most}) on the host, using at most {most} \
             threads\n"
        ),
        false => String::new(),
    })
}

/// The keyspaces that a selection means.
async fn keyspaces<O: Operator>(operator: &O, selection: &Selection) -> Answer<Vec<String>> {
    let all = operator.keyspaces().await?.into_iter().map(|keyspace| keyspace.keyspace);
    let Some(wanted) = &selection.keyspace else { return Ok(all.collect()) };
    match all.into_iter().find(|keyspace| keyspace == wanted) {
        Some(keyspace) => Ok(vec![keyspace]),
        None => Err(OperatorError::BadUse(format!("Keyspace [{wanted}] does not exist."))),
    }
}

async fn data_paths<O: Operator>(operator: &O, names: Vec<Selection>) -> Answer<String> {
    let names = match names.is_empty() {
        true => {
            let all = operator.keyspaces().await?.into_iter();
            all.map(|of| Selection { keyspace: Some(of.keyspace), tables: Vec::new() }).collect()
        }
        false => names,
    };
    let mut found: Vec<(String, Vec<(String, Vec<String>)>)> = Vec::new();
    for Selection { keyspace, tables } in names {
        let keyspace = keyspace.unwrap_or_default();
        let paths = operator.data_paths(&keyspace, tables.first().map(String::as_str)).await?;
        match found.iter_mut().find(|(name, _)| *name == keyspace) {
            Some((_, tables)) => tables.extend(paths),
            None => found.push((keyspace, paths)),
        }
    }
    Ok(compaction::data_paths(&found))
}

async fn table_stats<O: Operator>(
    env: &Env,
    operator: &O,
    filter: &TableFilter,
    human_readable: bool,
) -> Answer<String> {
    let all = operator.table_stats().await?;
    let keyspaces = operator.keyspaces().await?.into_iter().map(|keyspace| keyspace.keyspace);
    let groups = tables::select(&all, &keyspaces.collect(), filter)?;
    let mut text = tables::head(&groups);
    for group in &groups {
        text.push_str(&tables::group_head(group));
        for table in &group.shown {
            text.push_str(&tables::table(table, human_readable));
            env.maybe_yield().await;
        }
        text.push_str(tables::group_foot());
    }
    Ok(text)
}
