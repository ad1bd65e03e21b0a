//! `nodetool iostats`, a verb of ours: the I/O pattern of the last minute, as a block tracer would show it.

use std::fmt::Write;

use env::{
    IO_SIZES, IO_WINDOW, IoFlow, IoKind, IoPattern, IoSums, IoTimes, IoWindow, io_size_limit,
};
use serde_json::{Map, Value, json};

use super::columns::Columns;
use super::number::{file_size, fixed};
use crate::operator::IoStats;

/// What has a share of the count and of the volume, as its plural.
const MOVED: [(IoKind, &str); 3] =
    [(IoKind::Read, "reads"), (IoKind::Write, "writes"), (IoKind::Discard, "discards")];
/// What moves no bytes by itself.
const OTHERS: [(IoKind, &str); 2] = [(IoKind::Sync, "syncs"), (IoKind::WriteBack, "write-backs")];
/// Quantiles that are shown, and their names.
const QUANTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")];
const NANOS_PER_MICRO: u64 = 1000;

/// Operations of a kind, all classes together.
#[derive(Clone, Debug, Default)]
struct Sum {
    ops: u64,
    errors: u64,
    bytes: u64,
    sizes: [u64; IO_SIZES],
    /// Bytes in the window that has the most, and operations likewise.
    peak_bytes: u64,
    peak_ops: u64,
}

fn sum(pattern: &IoPattern, kind: IoKind) -> Sum {
    let mut all = Sum::default();
    for flow in pattern.flows().into_iter().filter(|flow| flow.kind == kind) {
        all.ops += flow.ops;
        all.errors += flow.errors;
        all.bytes += flow.bytes;
        all.sizes.iter_mut().zip(&flow.sizes).for_each(|(mine, theirs)| *mine += theirs);
    }
    for window in &pattern.windows {
        let of = window.kind(kind);
        all.peak_bytes = all.peak_bytes.max(of.bytes);
        all.peak_ops = all.peak_ops.max(of.ops);
    }
    all
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 * 100.0 / of as f64 }
}

/// A number of a window, or of all, for a second.
fn per_second(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

fn peaks(windows: &[IoWindow]) -> (u64, u64) {
    let most = |of: fn(&IoWindow) -> u64| windows.iter().map(of).max().unwrap_or(0);
    (most(|window| window.in_flight), most(|window| window.queued))
}

/// A size up to which a class counts; the last has no limit.
fn size_name(class: usize) -> String {
    let limit = io_size_limit(class);
    match class + 1 < IO_SIZES {
        true if limit < 1 << 10 => format!("<= {limit} B"),
        true if limit < 1 << 20 => format!("<= {} KiB", limit >> 10),
        true => format!("<= {} MiB", limit >> 20),
        false => format!("> {} MiB", io_size_limit(class.saturating_sub(1)) >> 20),
    }
}

/// The text of `iostats`.
pub(crate) fn print(stats: &IoStats) -> String {
    let pattern = &stats.pattern;
    let seconds = pattern.period().as_secs_f64();
    let mut text = format!("Last {seconds:.1} s in windows of {} ms\n\n", IO_WINDOW.as_millis());
    text.push_str(&volumes(pattern, seconds));
    let ((device, queue), (most_device, most_queue)) =
        (pattern.mean_depth(), peaks(&pattern.windows));
    let _ = writeln!(
        text,
        "\nDepth: at the device {} on average, {most_device} at most (bound {}); in our queue {} on average, \
         {most_queue} at most\n",
        fixed(device, 2),
        stats.depth,
        fixed(queue, 2)
    );
    text.push_str(&sizes(pattern));
    text.push('\n');
    text.push_str(&latencies(pattern));
    text
}

fn volumes(pattern: &IoPattern, seconds: f64) -> String {
    let of = |kinds: &[(IoKind, &'static str)]| -> Vec<(&'static str, Sum)> {
        kinds.iter().map(|(kind, name)| (*name, sum(pattern, *kind))).collect()
    };
    let moved = of(&MOVED);
    let (ops, bytes) =
        moved.iter().fold((0, 0), |(ops, bytes), (_, of)| (ops + of.ops, bytes + of.bytes));
    let mut columns = Columns::default();
    columns.row(["", "Count", "Share", "Volume", "Share", "Mean/s", "Peak/s", "Errors"]);
    let window = IO_WINDOW.as_secs_f64();
    for (name, of) in &moved {
        let rate = |bytes, seconds| file_size(per_second(bytes, seconds) as u64);
        columns.row([
            *name,
            &of.ops.to_string(),
            &format!("{} %", fixed(share(of.ops, ops), 2)),
            &file_size(of.bytes),
            &format!("{} %", fixed(share(of.bytes, bytes), 2)),
            &rate(of.bytes, seconds),
            &rate(of.peak_bytes, window),
            &of.errors.to_string(),
        ]);
    }
    for (name, of) in of(&OTHERS) {
        let count = of.ops.to_string();
        columns.row([name, &count, "", "", "", "", "", &of.errors.to_string()]);
    }
    columns.text(&columns.widths(), "  ")
}

fn sizes(pattern: &IoPattern) -> String {
    let all = MOVED.map(|(kind, _)| sum(pattern, kind));
    let mut columns = Columns::default();
    columns.row(["Size", "Reads", "Writes", "Discards"]);
    for class in 0..IO_SIZES {
        let counts = [0, 1, 2].map(|kind: usize| {
            let of = all.get(kind).and_then(|of| of.sizes.get(class));
            of.copied().unwrap_or(0)
        });
        if counts.iter().any(|count| *count > 0) {
            let [reads, writes, discards] = counts.map(|count| count.to_string());
            columns.row([&size_name(class), &reads, &writes, &discards]);
        }
    }
    columns.text(&columns.widths(), "  ")
}

fn latencies(pattern: &IoPattern) -> String {
    let mut columns = Columns::default();
    let queue = ["Queue (us) p50", "p99", "p99.9", "max"];
    let device = ["Device (us) p50", "p99", "p99.9", "max"];
    let [a, b, c, d] = queue;
    let [e, f, g, h] = device;
    columns.row(["Class", "Operation", "Count", a, b, c, d, e, f, g, h]);
    for flow in pattern.flows() {
        let [a, b, c, d] = times(&flow.queue).map(|micros| micros.to_string());
        let [e, f, g, h] = times(&flow.device).map(|micros| micros.to_string());
        let count = flow.ops.to_string();
        let (class, kind) = (flow.class.name(), flow.kind.name());
        columns.row([class, kind, &count, &a, &b, &c, &d, &e, &f, &g, &h]);
    }
    columns.text(&columns.widths(), "  ")
}

/// The quantiles that are shown, and the longest, in microseconds.
fn times(of: &IoTimes) -> [u64; 4] {
    let [p50, p99, p999] = QUANTILES.map(|(q, _)| of.quantile(q));
    [p50, p99, p999, of.longest_ns / NANOS_PER_MICRO]
}

fn times_object(of: &IoTimes) -> Value {
    let mut object = Map::new();
    for ((_, name), micros) in QUANTILES.iter().zip(times(of)) {
        object.insert((*name).to_owned(), micros.into());
    }
    object.insert("max".to_owned(), (of.longest_ns / NANOS_PER_MICRO).into());
    object.insert("sum".to_owned(), (of.sum_ns / NANOS_PER_MICRO).into());
    Value::Object(object)
}

fn flow_object(flow: &IoFlow) -> Value {
    let sizes: Map<String, Value> = flow
        .sizes
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(class, count)| (io_size_limit(class).to_string(), (*count).into()))
        .collect();
    json!({
        "class": flow.class.name(),
        "operation": flow.kind.name(),
        "count": flow.ops,
        "errors": flow.errors,
        "bytes": flow.bytes,
        "sizes": sizes,
        "queue_us": times_object(&flow.queue),
        "device_us": times_object(&flow.device),
    })
}

fn sums_object(class: &str, kind: IoKind, sums: &IoSums) -> Value {
    json!({
        "class": class,
        "operation": kind.name(),
        "count": sums.ops,
        "bytes": sums.bytes,
        "queue_us": sums.queue_ns / NANOS_PER_MICRO,
        "device_us": sums.device_ns / NANOS_PER_MICRO,
        "longest_us": sums.longest_ns / NANOS_PER_MICRO,
    })
}

/// The same for programs; with each window, if asked for.
pub(crate) fn json(stats: &IoStats, with_windows: bool) -> String {
    let pattern = &stats.pattern;
    let seconds = pattern.period().as_secs_f64();
    let (device, queue) = pattern.mean_depth();
    let (most_device, most_queue) = peaks(&pattern.windows);
    let mut volumes = Map::new();
    let moved = MOVED.map(|(kind, name)| (name, sum(pattern, kind)));
    let (ops, bytes) =
        moved.iter().fold((0, 0), |(ops, bytes), (_, of)| (ops + of.ops, bytes + of.bytes));
    for (name, of) in &moved {
        let window = IO_WINDOW.as_secs_f64();
        let value = json!({
            "count": of.ops,
            "count_share": share(of.ops, ops) / 100.0,
            "bytes": of.bytes,
            "bytes_share": share(of.bytes, bytes) / 100.0,
            "bytes_per_second": per_second(of.bytes, seconds),
            "peak_bytes_per_second": per_second(of.peak_bytes, window),
            "peak_count_per_second": per_second(of.peak_ops, window),
        });
        volumes.insert((*name).to_owned(), value);
    }
    let flows = |flows: Vec<&IoFlow>| flows.into_iter().map(flow_object).collect::<Vec<_>>();
    let mut all = json!({
        "seconds": seconds,
        "window_ms": IO_WINDOW.as_millis() as u64,
        "starts_at_ms": stats.starts_at_millis,
        "volumes": volumes,
        "depth": {
            "bound": stats.depth, "mean": device, "max": most_device,
            "queue_mean": queue, "queue_max": most_queue,
        },
        "flows": flows(pattern.flows()),
        "since_start": flows(pattern.totals()),
    });
    if let (true, Some(object)) = (with_windows, all.as_object_mut()) {
        let window = |window: &IoWindow| {
            let sums = window.sums().map(|(class, kind, of)| sums_object(class.name(), kind, of));
            json!({
                "flows": sums.collect::<Vec<_>>(),
                "in_flight": window.in_flight,
                "queued": window.queued,
            })
        };
        object.insert("windows".to_owned(), pattern.windows.iter().map(window).collect());
    }
    format!("{all}\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use env::sim::{World, WorldOptions};
    use env::{Class, File, OpenOptions};

    use super::*;

    /// What a shard did that wrote 96 KiB as a flush, read 4 KiB twice for a statement and removed the file.
    fn stats() -> IoStats {
        let world = World::new(3, WorldOptions::default());
        let env = world.client("10.0.0.1".parse().unwrap());
        let inside = env.clone();
        let work = async move {
            let file = File::open(&inside, "/f", OpenOptions::READ_WRITE).await.unwrap();
            let flushed = file.with_class(Class::Flush);
            for at in 0..3 {
                flushed.write_all_at(vec![1; 32 << 10], at * (32 << 10)).await.0.unwrap();
            }
            flushed.sync_all().await.unwrap();
            let read = file.with_class(Class::Statement);
            for at in [0, 8192] {
                read.read_exact_at(Vec::new(), at, 4096).await.0.unwrap();
            }
            drop((file, flushed, read));
            inside.remove_file("/f").await.unwrap();
            inside.sleep(Duration::from_secs(1)).await;
            inside.io_pattern(0..10)
        };
        let pattern = world.block_on(&env, Duration::from_secs(5), work).unwrap();
        IoStats { pattern, starts_at_millis: 1_700_000_000_000, depth: 32 }
    }

    #[test]
    fn shows_shares_sizes_depth_and_latencies() {
        let text = print(&stats());
        let line = |start: &str| {
            let found = text.lines().find(|line| line.starts_with(start));
            found.unwrap_or_else(|| panic!("no {start}: {text}")).split_whitespace().collect()
        };
        let reads: Vec<&str> = line("reads");
        assert_eq!(reads[..7], ["reads", "2", "33.33", "%", "8", "KiB", "4.00"], "{text}");
        let writes: Vec<&str> = line("writes");
        assert_eq!(writes[1..3], ["3", "50.00"], "{text}");
        let discards: Vec<&str> = line("discards");
        assert_eq!(discards[1..7], ["1", "16.67", "%", "96", "KiB", "48.00"], "{text}");
        assert_eq!(line("syncs")[..2], ["syncs", "1"], "{text}");
        assert_eq!(line("<= 4 KiB")[3..], ["2", "0", "0"], "{text}");
        assert_eq!(line("<= 32 KiB")[3..], ["0", "3", "0"], "{text}");
        assert_eq!(line("<= 128 KiB")[3..], ["0", "0", "1"], "{text}");
        assert!(line("Depth: at")[7].starts_with('1'), "{text}");
        assert!(line("Depth: at").contains(&"32);"), "{text}");
        assert_eq!(line("flush      write")[..3], ["flush", "write", "3"], "{text}");
        assert!(line("flush      write")[7].parse::<u64>().unwrap() > 0, "{text}");
        assert_eq!(line("statement  read")[..3], ["statement", "read", "2"], "{text}");
    }

    #[test]
    fn says_the_same_to_programs() {
        let value: Value = serde_json::from_str(&json(&stats(), true)).unwrap();
        let reads = &value["volumes"]["reads"];
        assert_eq!((&reads["count"], &reads["bytes"]), (&json!(2), &json!(8192)));
        assert_eq!(value["windows"].as_array().unwrap().len(), 10);
        let flows = value["flows"].as_array().unwrap();
        let written =
            flows.iter().find(|flow| flow["class"] == "flush" && flow["operation"] == "write");
        assert_eq!(written.unwrap()["sizes"], json!({ "32768": 3 }));
        let windows = value["windows"].as_array().unwrap().iter();
        let in_windows = windows.flat_map(|window| window["flows"].as_array().unwrap());
        let bytes = in_windows.filter(|flow| flow["operation"] == "write");
        assert_eq!(bytes.map(|flow| flow["bytes"].as_u64().unwrap()).sum::<u64>(), 96 << 10);
        let value: Value = serde_json::from_str(&json(&stats(), false)).unwrap();
        assert!(value.get("windows").is_none());
    }
}
