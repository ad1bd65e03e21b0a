//! `nodetool profileload`, `toppartitions` (`metrics.SamplingManager`) and `rangekeysample`.

use super::columns::Columns;
use crate::model::{Sample, Sampled, SampledTables, Sampler};

/// What a sampler shows: its description and its columns.
struct Form {
    description: &'static str,
    columns: &'static [(&'static str, fn(&Sample) -> String)],
}

const TABLE: (&str, fn(&Sample) -> String) = ("Table", |of| of.table.clone());
const PARTITION: (&str, fn(&Sample) -> String) = ("Partition", |of| of.value.clone());

fn count(of: &Sample) -> String {
    of.count.to_string()
}

fn form(of: Sampler) -> Form {
    const FREQUENCY: &[(&str, fn(&Sample) -> String)] =
        &[TABLE, PARTITION, ("Count", count), ("+/-", |of| of.error.to_string())];
    let (description, columns): (_, &[_]) = match of {
        Sampler::Reads => ("Frequency of reads by partition", FREQUENCY),
        Sampler::Writes => ("Frequency of writes by partition", FREQUENCY),
        Sampler::LocalReadTime => (
            "Longest read query times",
            &[("Query", |of| of.value.clone()), ("Microseconds", count)],
        ),
        Sampler::ReadRowCount => {
            ("Partitions read with the most rows", &[TABLE, PARTITION, ("Rows", count)])
        }
        Sampler::ReadTombstoneCount => {
            ("Partitions read with the most tombstones", &[TABLE, PARTITION, ("Tombstones", count)])
        }
        Sampler::ReadSstableCount => {
            ("Partitions read with the most sstables", &[TABLE, PARTITION, ("SSTables", count)])
        }
        Sampler::WriteSize => {
            ("Max mutation size by partition", &[TABLE, PARTITION, ("Bytes", count)])
        }
        Sampler::CasContentions => ("Frequency of CAS contention by partition", FREQUENCY),
    };
    Form { description, columns }
}

/// What samplers found, in Cassandra's order of them, with an empty line between two.
pub fn found(all: &[Sampled]) -> String {
    let mut parts = Vec::new();
    for sampler in Sampler::ALL {
        let Some(of) = all.iter().find(|of| of.sampler == sampler) else { continue };
        let Form { description, columns } = form(sampler);
        let mut text = format!("{description}:\n");
        if of.samples.is_empty() {
            text.push_str("   Nothing recorded during sampling period...\n");
        } else {
            let mut table = Columns::default();
            let indented = |cells: Vec<String>| -> Vec<String> {
                std::iter::once("  ".to_owned()).chain(cells).collect()
            };
            let titles = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
            table.extend(indented(titles).iter().map(String::as_str));
            for sample in &of.samples {
                let cells = columns.iter().map(|(_, cell)| cell(sample)).collect();
                table.extend(indented(cells).iter().map(String::as_str));
            }
            text.push_str(&table.text(&table.widths(), " "));
        }
        parts.push(text);
    }
    parts.join("\n")
}

/// What could not be scheduled, if that is so.
pub(super) fn unscheduled(of: &SampledTables, done: bool) -> String {
    let (keyspace, table) = names(of);
    match done {
        true => String::new(),
        false => format!(
            "Unable to schedule sampling for keyspace: {keyspace}, table: {table} due to existing \
             samplings. Stop the existing sampling jobs first.\n"
        ),
    }
}

/// What could not be stopped, if that is so.
pub(super) fn unstopped(of: &SampledTables, done: bool) -> String {
    let (keyspace, table) = names(of);
    match done {
        true => String::new(),
        false => format!(
            "Unable to stop the non-existent scheduled sampling for keyspace: {keyspace}, table: \
             {table}\n"
        ),
    }
}

/// As Java writes what is not there.
fn names(of: &SampledTables) -> (&str, &str) {
    (of.keyspace.as_deref().unwrap_or("null"), of.table.as_deref().unwrap_or("null"))
}

/// The list of what is sampled into the log. Only the column of keyspaces grows.
pub(super) fn list(all: &[SampledTables]) -> String {
    let (keyspace, table) = ("KEYSPACE", "TABLE");
    let names = |of: &SampledTables| {
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "*".to_owned());
        (name(&of.keyspace), name(&of.table))
    };
    let all: Vec<_> = all.iter().map(names).collect();
    let widths = all.iter().map(|(keyspace, _)| keyspace.chars().count());
    let width = widths.fold(keyspace.len(), usize::max);
    let mut text = format!("{keyspace:>width$} {table}\n");
    for (keyspace, table) in &all {
        text.push_str(&format!("{keyspace:>width$} {table:>5}\n"));
    }
    text
}

/// Tokens of keys.
pub(super) fn keys(tokens: &[i64]) -> String {
    let lines = tokens.iter().map(|token| format!("\t{token}\n"));
    format!("RangeKeySample: \n{}", lines.collect::<String>())
}
