//! Options of repairs and summaries of previews, as Cassandra's own classes say them.

use std::collections::BTreeMap;

use repair::wire::{SessionSummary, StreamSummary};
use repair::{NodeSettings, RepairOptions, SyncStat, SyncStatSummary};
use schema::TableId;

use crate::common::*;

/// The vectors' node, whose settings are the default ones.
fn settings() -> NodeSettings {
    NodeSettings { data_center: "datacenter1".to_owned(), ..NodeSettings::default() }
}

fn map(text: &str) -> BTreeMap<String, String> {
    let entries = text.split('|').filter_map(|entry| entry.split_once('='));
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn options_are_understood_as_cassandra_does() {
    let (mut errors, mut options) = (BTreeMap::new(), 0);
    for parts in vectors("5.0.9", "option") {
        let said = match RepairOptions::parse(&map(parts[0]), settings()) {
            Ok(options) => format!("={options}"),
            Err(error) => format!("!{error}"),
        };
        assert_eq!(said, parts[1], "{}", parts[0]);
        if let Some(error) = said.strip_prefix('!') {
            *errors.entry(error.to_owned()).or_insert(0) += 1;
        }
        options += 1;
    }
    assert!(options >= 400 && errors.len() >= 10, "{options}, {errors:?}");
}

#[test]
fn settings_optimise_streams() {
    let settings = NodeSettings { optimises_incremental: true, ..settings() };
    let optimises = |text: &str| {
        let options = RepairOptions::parse(&map(text), settings.clone()).expect("options");
        options.optimises_streams()
    };
    assert!(optimises("incremental=true|") && optimises("optimiseStreams=true|"));
    assert!(!optimises("") && !optimises("incremental=true|previewKind=ALL|"));
    let pull = "pullRepair=true|hosts=a,b|ranges=1:2|optimiseStreams=true|incremental=true|";
    assert!(!optimises(pull));
}

#[test]
fn options_are_kept_as_they_are_sent() {
    let text = "ranges=1:2|columnFamilies=b,a|parallelism=parallel|jobThreads=2|trace=true|";
    let options = RepairOptions::parse(&map(text), settings()).expect("options");
    let kept = options.to_map();
    assert_eq!((&*kept["ranges"], &*kept["sub_range_repair"]), ("(1,2]", "true"));
    assert_eq!((&*kept["columnFamilies"], &*kept["parallelism"]), ("a,b", "parallel"));
    assert_eq!((kept.len(), &*kept["previewKind"], &*kept["dataCenters"]), (16, "NONE", ""));
    // ranges that nobody named are those of the whole keyspace
    let mut whole =
        RepairOptions::parse(&map("parallelism=parallel|"), settings()).expect("options");
    whole.ranges.clone_from(&options.ranges);
    assert_eq!(
        (&*whole.to_map()["ranges"], &*whole.to_map()["sub_range_repair"]),
        ("(1,2]", "false")
    );
}

fn streams(text: &str) -> Vec<StreamSummary> {
    let stream = |text: &str| {
        let parts: Vec<&str> = text.split(':').collect();
        StreamSummary {
            table: TableId::parse(parts[0]).expect("an id"),
            files: parts[1].parse().unwrap(),
            bytes: parts[2].parse().unwrap(),
        }
    };
    list(text).into_iter().map(stream).collect()
}

/// A pair of the vectors: ranges, then two addresses and what went between them, if anything was
/// counted.
fn stat(text: &str) -> SyncStat {
    let parts: Vec<&str> = text.split(' ').collect();
    let session = |parts: &[&str]| SessionSummary {
        coordinator: address(parts[0]),
        peer: address(parts[1]),
        receiving: streams(parts[2]),
        sending: streams(parts[3]),
    };
    let is_counted = parts.len() == 5;
    SyncStat {
        differences: ranges(parts[0]),
        summaries: is_counted.then(|| vec![session(&parts[1..])]),
    }
}

/// A summary as ours: ranges and pairs sorted, of ranges that were cut off none.
fn sorted(text: &str) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for line in &mut lines {
        if let Some(ranges) = line.strip_prefix("    Mismatching ranges: ") {
            let mut ranges: Vec<&str> = ranges.split_inclusive("],").collect();
            if ranges.last() == Some(&"...") {
                assert_eq!(ranges.len(), 31);
                ranges = vec!["30 of them"];
            }
            ranges.sort_unstable();
            *line = format!("    Mismatching ranges: {}", ranges.concat());
        }
    }
    for pairs in lines.chunk_by_mut(|a, b| a.contains(" -> ") && b.contains(" -> ")) {
        pairs.sort_unstable();
    }
    lines.join("\n")
}

#[test]
fn summaries_are_cassandras() {
    let (mut cut, mut pairs) = (0, 0);
    for parts in vectors("5.0.9", "summary") {
        let mut summary = SyncStatSummary::new(parts[0] == "true");
        for table in parts[1].split('}').filter(|table| !table.is_empty()) {
            let (name, stats) = table.split_once('{').expect("a table");
            let stats = stats.split(';').filter(|stat| !stat.is_empty());
            let stats: Vec<SyncStat> = stats.map(stat).collect();
            summary.add("ks", name, false, &stats);
        }
        assert_eq!(summary.is_empty().to_string(), parts[2]);
        let expected = parts[3].replace("\\n", "\n");
        assert_eq!(sorted(&summary.to_string()), sorted(&expected));
        cut += expected.matches("...").count();
        pairs += expected.matches(" -> ").count();
    }
    assert!(cut >= 2 && pairs >= 30, "{cut} {pairs}");
}

#[test]
fn counters_are_not_in_the_total() {
    let stats =
        [stat("1:2 10.0.0.1@7000 10.0.0.2@7000 - 06f3d284-8f39-4bcd-dd64-2cf4097060e4:3:2048")];
    let mut summary = SyncStatSummary::new(true);
    summary.add("ks", "counters", true, &stats);
    assert!(summary.is_empty());
    assert_eq!(
        summary.to_string(),
        "Total estimated streaming: 0 ranges, 0 sstables, 0B bytes\n\
         ks.counters - 1 ranges, 3 sstables, 2.000KiB bytes\n    Mismatching ranges: (1,2],\n    \
         /10.0.0.1:7000 -> /10.0.0.2:7000: 1 ranges, 3 sstables, 2.000KiB bytes\n    \
         /10.0.0.2:7000 -> /10.0.0.1:7000: 1 ranges, 0 sstables, 0B bytes\n\n"
    );
}

#[test]
fn sizes_are_printed_as_cassandra_does() {
    let id = "06f3d284-8f39-4bcd-dd64-2cf4097060e4";
    let mut sizes = 0;
    for parts in vectors("5.0.9", "size") {
        let text = format!("- 10.0.0.1@7000 10.0.0.2@7000 - {id}:1:{}", parts[0]);
        let mut summary = SyncStatSummary::new(false);
        summary.add("ks", "t", false, &[stat(&text)]);
        let said = summary.to_string();
        let total = said.lines().next().unwrap_or_default();
        assert_eq!(total, format!("Total streaming: 0 ranges, 1 sstables, {} bytes", parts[1]));
        sizes += 1;
    }
    assert!(sizes >= 100);
}
