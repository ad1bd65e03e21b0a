//! `nodetool iostats`, a verb of ours: the I/O pattern of the last minute, as a block tracer would
//! show it.

use std::fmt::Write;
use std::time::Duration;

use doctor::{Baseline, Figure};
use env::{IO_SIZES, io_size_limit};
use serde_json::{Map, Value, json};

use super::columns::Columns;
use super::number::{file_size, fixed};
use crate::model::{IoFlow, IoLatencies, IoSize, IoStats, IoSum, IoVolume, IoWindow};

/// What moves bytes, and so has a share of the count and of the volume.
const MOVED: [&str; 3] = ["reads", "writes", "discards"];

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 * 100.0 / of as f64 }
}

/// A number of a window, or of all, for a second.
fn per_second(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

fn window_seconds(stats: &IoStats) -> f64 {
    Duration::from_millis(stats.window_millis).as_secs_f64()
}

/// What moves bytes, and its operations and bytes in all.
fn moved(stats: &IoStats) -> (Vec<&IoVolume>, u64, u64) {
    let moved: Vec<&IoVolume> =
        stats.volumes.iter().filter(|of| MOVED.contains(&of.name.as_str())).collect();
    let (ops, bytes) = moved.iter().fold((0u64, 0u64), |(ops, bytes), of| {
        (ops.saturating_add(of.count), bytes.saturating_add(of.bytes))
    });
    (moved, ops, bytes)
}

/// Operations of a class of sizes.
fn of_size(sizes: &[IoSize], class: usize) -> u64 {
    let limit = io_size_limit(class);
    sizes.iter().find(|size| size.limit_bytes == limit).map_or(0, |size| size.count)
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
pub(super) fn print(stats: &IoStats) -> String {
    let seconds = stats.period_seconds;
    let mut text = format!("Last {seconds:.1} s in windows of {} ms\n\n", stats.window_millis);
    text.push_str(&volumes(stats));
    let depth = &stats.depth;
    let _ = writeln!(
        text,
        "\nDepth: at the device {} on average, {} at most (bound {}); in our queue {} on average, {} at most\n",
        fixed(depth.mean, 2),
        depth.max,
        depth.bound,
        fixed(depth.queue_mean, 2),
        depth.queue_max
    );
    text.push_str(&sizes(stats));
    text.push('\n');
    text.push_str(&latencies(stats));
    if let Some(of) = &stats.baseline {
        text.push_str(&baseline(stats, of));
    }
    text
}

/// What the machine was measured to do, beside what it does now.
fn baseline(stats: &IoStats, of: &Baseline) -> String {
    let mut columns = Columns::default();
    columns.row(["Figure", "Baseline", "Unit", "Mean now", "Peak now"]);
    for Figure { name, value, unit, .. } in &of.figures {
        let [mean, peak] =
            now(stats, name).map(|now| now.map_or(String::new(), |now| fixed(now, 1)));
        columns.row([name, &fixed(*value, 1), unit, &mean, &peak]);
    }
    format!(
        "\nBaseline of {} on {}, by helenus doctor --measure\n{}",
        of.date,
        of.host,
        columns.text(&columns.widths(), "  ")
    )
}

/// What of the last windows compares with a figure: a mean and a peak, in the figure's unit.
fn now(stats: &IoStats, figure: &str) -> [Option<f64>; 2] {
    const MEGABYTE: f64 = 1e6;
    let (seconds, window) = (stats.period_seconds, window_seconds(stats));
    let volume = |name: &str| stats.volumes.iter().find(|of| of.name == name);
    let count = |name| {
        volume(name)
            .map(|of| [per_second(of.count, seconds), per_second(of.window_peak_count, window)])
    };
    let bytes = |name| {
        volume(name).map(|of| {
            [per_second(of.bytes, seconds), per_second(of.window_peak_bytes, window)]
                .map(|bytes| bytes / MEGABYTE)
        })
    };
    let both = match figure {
        "read_128k" => bytes("reads"),
        "write_128k" => bytes("writes"),
        "append_sync_4k" => count("syncs"),
        name if name.starts_with("read_4k_depth_") && !name.contains("_p") => count("reads"),
        _ => None,
    };
    both.map_or([None, None], |both| both.map(Some))
}

fn volumes(stats: &IoStats) -> String {
    let (moved, ops, bytes) = moved(stats);
    let mut columns = Columns::default();
    columns.row(["", "Count", "Share", "Volume", "Share", "Mean/s", "Peak/s", "Errors"]);
    for of in moved {
        let rate = |bytes, seconds| file_size(per_second(bytes, seconds) as u64);
        columns.row([
            &of.name,
            &of.count.to_string(),
            &format!("{} %", fixed(share(of.count, ops), 2)),
            &file_size(of.bytes),
            &format!("{} %", fixed(share(of.bytes, bytes), 2)),
            &rate(of.bytes, stats.period_seconds),
            &rate(of.window_peak_bytes, window_seconds(stats)),
            &of.errors.to_string(),
        ]);
    }
    for of in stats.volumes.iter().filter(|of| !MOVED.contains(&of.name.as_str())) {
        let count = of.count.to_string();
        columns.row([&of.name, &count, "", "", "", "", "", &of.errors.to_string()]);
    }
    columns.text(&columns.widths(), "  ")
}

fn sizes(stats: &IoStats) -> String {
    let all = MOVED.map(|name| stats.volumes.iter().find(|of| of.name == name));
    let mut columns = Columns::default();
    columns.row(["Size", "Reads", "Writes", "Discards"]);
    for class in 0..IO_SIZES {
        let counts = all.map(|of| of.map_or(0, |of| of_size(&of.sizes, class)));
        if counts.iter().any(|count| *count > 0) {
            let [reads, writes, discards] = counts.map(|count| count.to_string());
            columns.row([&size_name(class), &reads, &writes, &discards]);
        }
    }
    columns.text(&columns.widths(), "  ")
}

fn latencies(stats: &IoStats) -> String {
    let mut columns = Columns::default();
    let queue = ["Queue (us) p50", "p99", "p99.9", "max"];
    let device = ["Device (us) p50", "p99", "p99.9", "max"];
    let [a, b, c, d] = queue;
    let [e, f, g, h] = device;
    columns.row(["Class", "Operation", "Count", a, b, c, d, e, f, g, h]);
    let times = |of: &IoLatencies| [of.p50, of.p99, of.p999, of.max].map(|us| us.to_string());
    for flow in &stats.flows {
        let [a, b, c, d] = times(&flow.queue_micros);
        let [e, f, g, h] = times(&flow.device_micros);
        let count = flow.count.to_string();
        let (class, kind) = (flow.class.as_str(), flow.operation.as_str());
        columns.row([class, kind, &count, &a, &b, &c, &d, &e, &f, &g, &h]);
    }
    columns.text(&columns.widths(), "  ")
}

fn times_object(of: &IoLatencies) -> Value {
    json!({ "p50": of.p50, "p99": of.p99, "p99.9": of.p999, "max": of.max, "sum": of.sum })
}

fn flow_object(flow: &IoFlow) -> Value {
    let sizes = flow.sizes.iter();
    let sizes: Map<String, Value> =
        sizes.map(|size| (size.limit_bytes.to_string(), size.count.into())).collect();
    json!({
        "class": flow.class,
        "operation": flow.operation,
        "count": flow.count,
        "errors": flow.errors,
        "bytes": flow.bytes,
        "sizes": sizes,
        "queue_us": times_object(&flow.queue_micros),
        "device_us": times_object(&flow.device_micros),
    })
}

fn sum_object(sum: &IoSum) -> Value {
    json!({
        "class": sum.class,
        "operation": sum.operation,
        "count": sum.count,
        "bytes": sum.bytes,
        "queue_us": sum.queue_micros,
        "device_us": sum.device_micros,
        "longest_us": sum.longest_micros,
    })
}

/// The text of `iostats -F json`, older than `--format json`: with each window, if there are some.
pub(super) fn json(stats: &IoStats) -> String {
    let (seconds, window) = (stats.period_seconds, window_seconds(stats));
    let (moved, ops, bytes) = moved(stats);
    let mut volumes = Map::new();
    for of in moved {
        let value = json!({
            "count": of.count,
            "count_share": share(of.count, ops) / 100.0,
            "bytes": of.bytes,
            "bytes_share": share(of.bytes, bytes) / 100.0,
            "bytes_per_second": per_second(of.bytes, seconds),
            "peak_bytes_per_second": per_second(of.window_peak_bytes, window),
            "peak_count_per_second": per_second(of.window_peak_count, window),
        });
        volumes.insert(of.name.clone(), value);
    }
    let depth = &stats.depth;
    let flows = |flows: &[IoFlow]| flows.iter().map(flow_object).collect::<Vec<_>>();
    let mut all = json!({
        "seconds": seconds,
        "window_ms": stats.window_millis,
        "starts_at_ms": stats.starts_at_millis,
        "volumes": volumes,
        "depth": {
            "bound": depth.bound, "mean": depth.mean, "max": depth.max,
            "queue_mean": depth.queue_mean, "queue_max": depth.queue_max,
        },
        "flows": flows(&stats.flows),
        "since_start": flows(&stats.since_start),
    });
    if let (Some(of), Some(object)) = (&stats.baseline, all.as_object_mut()) {
        object.insert("baseline".to_owned(), json!(of));
    }
    if let (Some(windows), Some(object)) = (&stats.windows, all.as_object_mut()) {
        let window = |window: &IoWindow| {
            json!({
                "flows": window.flows.iter().map(sum_object).collect::<Vec<_>>(),
                "in_flight": window.in_flight,
                "queued": window.queued,
            })
        };
        object.insert("windows".to_owned(), windows.iter().map(window).collect());
    }
    format!("{all}\n")
}

#[cfg(test)]
mod tests {
    use env::sim::{World, WorldOptions};
    use env::{Class, File, OpenOptions};

    use super::*;

    /// What a shard did that wrote 96 KiB as a flush, read 4 KiB twice for a statement and removed
    /// the file.
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
        IoStats::of(&pattern, 1_700_000_000_000, 32)
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
    fn a_baseline_stands_beside_what_happens_now() {
        let figures = vec![
            Figure::rate("read_4k_depth_8", 9876.5, "reads/s"),
            Figure::rate("write_128k", 512.0, "MB/s"),
            Figure::rate("cpu", 3.0, "M steps/s"),
        ];
        let (date, host) = ("2026-01-02T03-04-05Z".to_owned(), "h".to_owned());
        let baseline = Some(Baseline { date, host, figures, ..Baseline::default() });
        let stats = IoStats { baseline, ..stats() };
        let text = print(&stats);
        let line = |start: &str| -> Vec<&str> {
            let found = text.lines().find(|line| line.starts_with(start));
            found.unwrap_or_else(|| panic!("no {start}: {text}")).split_whitespace().collect()
        };
        assert!(text.contains("\nBaseline of 2026-01-02T03-04-05Z on h, by "), "{text}");
        // two reads in one second, in one window of 100 ms
        assert_eq!(
            line("read_4k_depth_8"),
            ["read_4k_depth_8", "9876.5", "reads/s", "2.0", "20.0"]
        );
        // 96 KiB in a second
        assert_eq!(line("write_128k")[1..4], ["512.0", "MB/s", "0.1"], "{text}");
        assert_eq!(line("cpu"), ["cpu", "3.0", "M", "steps/s"], "{text}");
        let value: Value = serde_json::from_str(&json(&stats)).unwrap();
        assert_eq!(value["baseline"]["host"], "h");
    }

    #[test]
    fn says_the_same_to_programs() {
        let value: Value = serde_json::from_str(&json(&stats())).unwrap();
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
        let value: Value =
            serde_json::from_str(&json(&IoStats { windows: None, ..stats() })).unwrap();
        assert!(value.get("windows").is_none());
    }
}
