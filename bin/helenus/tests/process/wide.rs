//! A partition far larger than the memory that the node may use for anything.

use std::time::Instant;

use protocol::client::{BoundValue, Parameters};
use protocol::{Consistency, ErrorDetail};

use crate::client::Client;
use crate::node::{Node, Place};

/// Rows of the partition, and bytes of each one's value: 200 MB together.
const ROWS: i32 = 100_000;
const VALUE_BYTES: usize = 2_000;
/// Connections that write.
const WRITERS: i32 = 4;
/// `memory_budget` of the tests' nodes, in bytes.
const BUDGET: u64 = 256 << 20;

/// A row's value: noise, so that nothing shrinks on disk, and another one in each row.
fn value(row: i32) -> Vec<u8> {
    let mut state = u64::from(row.unsigned_abs()) + 1;
    let mut bytes = Vec::with_capacity(VALUE_BYTES);
    while bytes.len() < VALUE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes
}

fn int(value: i32) -> BoundValue {
    BoundValue::Bytes(value.to_be_bytes().to_vec())
}

/// Writes the rows whose number leaves this rest.
fn write(ip: &str, rest: i32) {
    let mut client = Client::connect(ip);
    let id = client.prepare("INSERT INTO ks.wide (k, c, v) VALUES (1, ?, ?)");
    for row in (rest..ROWS).step_by(WRITERS as usize) {
        let values = vec![int(row), BoundValue::Bytes(value(row))];
        let parameters = Parameters { values, ..Parameters::at(Consistency::One) };
        client.execute(&id, &parameters).unwrap_or_else(|error| panic!("row {row}: {error:?}"));
    }
}

/// Reads a slice page by page; every row must be the next one, with its value.
fn slice(client: &mut Client, text: &str, page_size: i32, expected: impl Iterator<Item = i32>) {
    let id = client.prepare(text);
    let mut expected = expected;
    let mut state = None;
    loop {
        let parameters = Parameters {
            page_size: Some(page_size),
            paging_state: state,
            ..Parameters::at(Consistency::One)
        };
        let page = client.execute(&id, &parameters).unwrap().expect("rows");
        for row in page.rows {
            let number = expected.next().expect("no row past the last one");
            assert_eq!(row[0].as_deref(), Some(&number.to_be_bytes()[..]), "{text}");
            assert!(row[1].as_deref() == Some(&value(number)[..]), "{text}: value of {number}");
        }
        state = page.metadata.paging_state;
        if state.is_none() {
            break;
        }
    }
    assert_eq!(expected.next(), None, "{text} ends early");
}

fn all_slices(client: &mut Client) {
    let wide = |rest: &str| format!("SELECT c, v FROM ks.wide WHERE k = 1{rest}");
    slice(client, &wide(""), 1000, 0..ROWS);
    slice(client, &wide(" ORDER BY c DESC"), 1000, (0..ROWS).rev());
    let middle = " AND c >= 50000 AND c < 50100";
    slice(client, &wide(middle), 7, 50_000..50_100);
    slice(client, &wide(&format!("{middle} ORDER BY c DESC")), 7, (50_000..50_100).rev());
    slice(client, &wide(" AND c > 99990"), 3, 99_991..ROWS);
    slice(client, &wide(" AND c < 10 ORDER BY c DESC"), 3, (0..10).rev());
}

/// All of it in one result is more than a result may take.
fn refuses_all_at_once(client: &mut Client) {
    let id = client.prepare("SELECT c, v FROM ks.wide WHERE k = 1");
    let all = client.execute(&id, &Parameters::at(Consistency::One));
    let error = all.expect_err("is far larger than the budget");
    assert!(matches!(error, ErrorDetail::ReadFailure { .. }), "{error:?}");
}

/// The most memory that the process ever had, in bytes.
fn peak_memory(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_wide_partition_fits_the_budget() {
    let place = Place::new(37);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(0);
    client.query(
        "CREATE TABLE ks.wide (k int, c int, v blob, PRIMARY KEY (k, c)) \
         WITH compaction = {'class': 'SizeTieredCompactionStrategy'}",
    );
    let started = Instant::now();
    std::thread::scope(|scope| {
        for rest in 0..WRITERS {
            let ip = node.ip.as_str();
            scope.spawn(move || write(ip, rest));
        }
    });
    println!("written in {:?}, peak {} bytes", started.elapsed(), peak_memory(&node));
    all_slices(&mut client);
    node.verb(&["flush", "ks", "wide"]);
    all_slices(&mut client);
    node.verb(&["compact", "ks", "wide"]);
    all_slices(&mut client);
    refuses_all_at_once(&mut client);
    println!("all in {:?}, peak {} bytes", started.elapsed(), peak_memory(&node));
    let peak = peak_memory(&node);
    assert!(peak < BUDGET, "{peak} bytes");
    node.stop();
    let node = place.serve(&[]);
    all_slices(&mut Client::connect(&node.ip));
    let peak = peak_memory(&node);
    assert!(peak < BUDGET, "{peak} bytes after a restart");
    node.stop();
}
