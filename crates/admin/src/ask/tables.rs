//! Verbs of keyspaces and tables.

use std::collections::{BTreeMap, BTreeSet};

use env::Env;

use crate::model::{KeyspacePaths, KeyspaceStats, Refusal, Requests, Shown, TableStats};
use crate::nodetool::{Selection, TableFilter, TablesVerb};
use crate::operator::{Answer, TablesOperator};

pub(super) async fn ask(
    env: &Env,
    operator: &impl TablesOperator,
    verb: TablesVerb,
) -> Answer<Option<Shown>> {
    Ok(Some(match verb {
        TablesVerb::RefreshSizeEstimates => {
            operator.refresh_size_estimates().await?;
            return Ok(None);
        }
        TablesVerb::Stats { filter, .. } => {
            Shown::TableStats(table_stats(env, operator, &filter).await?)
        }
        TablesVerb::Histograms(of) => {
            Shown::TableHistograms(operator.histograms(of.as_ref()).await?)
        }
        TablesVerb::DataPaths { of, .. } => Shown::DataPaths(data_paths(operator, of).await?),
        TablesVerb::DataFiles { of, key, hex, .. } => {
            Shown::DataFiles(operator.sstables_of(&of, &key, hex).await?)
        }
    }))
}

async fn data_paths(
    operator: &impl TablesOperator,
    names: Vec<Selection>,
) -> Answer<Vec<KeyspacePaths>> {
    let names = match names.is_empty() {
        true => {
            let all = operator.keyspaces().await?.into_iter();
            all.map(|of| Selection { keyspace: Some(of.keyspace), tables: Vec::new() }).collect()
        }
        false => names,
    };
    let mut found: Vec<KeyspacePaths> = Vec::new();
    for Selection { keyspace, tables } in names {
        let keyspace = keyspace.unwrap_or_default();
        let paths = operator.data_paths(&keyspace, tables.first().map(String::as_str)).await?;
        match found.iter_mut().find(|of| of.keyspace == keyspace) {
            Some(of) => of.tables.extend(paths),
            None if paths.is_empty() => {}
            None => found.push(KeyspacePaths { keyspace, tables: paths }),
        }
    }
    Ok(found)
}

/// The tables that `filter` asks for, by keyspace, those without any left out.
async fn table_stats(
    env: &Env,
    operator: &impl TablesOperator,
    filter: &TableFilter,
) -> Answer<Vec<KeyspaceStats>> {
    let all = operator.table_stats().await?;
    let keyspaces = operator.keyspaces().await?.into_iter().map(|keyspace| keyspace.keyspace);
    let named = names(&all, &keyspaces.collect(), filter)?;
    let is_named = |table: &TableStats| match named.get(table.keyspace.as_str()) {
        None => filter.names.is_empty(),
        Some(tables) => tables.is_empty() || tables.contains(table.table.as_str()),
    };
    let mut found: Vec<KeyspaceStats> = Vec::new();
    for table in all {
        let is_shown = is_named(&table) != filter.ignore;
        if found.last().is_none_or(|of| of.keyspace != table.keyspace) {
            found.push(KeyspaceStats {
                keyspace: table.keyspace.clone(),
                reads: Requests::default(),
                writes: Requests::default(),
                pending_flushes: 0,
                tables: Vec::new(),
            });
        }
        if let Some(of) = found.last_mut() {
            of.reads = of.reads + table.reads;
            of.writes = of.writes + table.writes;
            of.pending_flushes += table.pending_flushes;
            of.tables.extend(is_shown.then_some(table));
        }
        env.maybe_yield().await;
    }
    found.retain(|of| !of.tables.is_empty());
    Ok(found)
}

/// The tables that are named, by keyspace, all of one for none; refuses names that stand for
/// nothing, as Cassandra's `OptionFilter`.
fn names<'a>(
    tables: &[TableStats],
    keyspaces: &BTreeSet<String>,
    filter: &'a TableFilter,
) -> Answer<BTreeMap<&'a str, BTreeSet<&'a str>>> {
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in &filter.names {
        let (keyspace, table) = name.split_once('.').unwrap_or((name, ""));
        let tables = named.entry(keyspace).or_default();
        if !table.is_empty() {
            tables.insert(table);
        }
    }
    if let Some(unknown) = named.keys().find(|name| !keyspaces.contains(**name)) {
        return Err(Refusal::BadUse(format!("Unknown keyspace: {unknown}")));
    }
    for (keyspace, wanted) in &named {
        let exists =
            |table: &str| tables.iter().any(|t| t.keyspace == *keyspace && t.table == table);
        let unknown: Vec<&str> = wanted.iter().copied().filter(|table| !exists(table)).collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            let text = format!("Unknown tables: [{unknown}] in keyspace: {keyspace}");
            return Err(Refusal::BadUse(text));
        }
    }
    Ok(named)
}
