//! Verbs over SSTables, on files that are damaged or hold what is needless.

use std::path::{Path, PathBuf};

use protocol::Consistency;
use sstable::checksum::ChunkChecksums;

use crate::client::Client;
use crate::node::{Node, Place};

const ROWS: i32 = 1200;
const CHUNK_BYTES: usize = 4096;
/// Rows are larger than this, so that a chunk holds parts of no more than so many.
const ROW_BYTES_MIN: usize = 200;

/// A value of row `k` that no compressor makes small.
fn value(k: i32) -> String {
    let mut state = k.unsigned_abs() + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + 5 + (state >> 24) as u8 % 80)
    };
    (0..ROW_BYTES_MIN).map(|_| next()).filter(|c| *c != '\'').collect()
}

fn keyspace(client: &mut Client) {
    client.query(
        "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 1}",
    );
}

fn fill(client: &mut Client, options: &str) {
    keyspace(client);
    client.query(&format!("CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH {options}"));
    for k in 0..ROWS {
        client.query(&format!("INSERT INTO ks.t (k, v) VALUES ({k}, '{}')", value(k)));
    }
}

fn count(client: &mut Client, table: &str) -> i64 {
    let rows = client.query(&format!("SELECT count(*) FROM {table}"));
    i64::from_be_bytes(rows[0][0].as_deref().unwrap().try_into().unwrap())
}

/// Rows that are there have the value that they were written with; how many there are.
fn check(client: &mut Client) -> usize {
    let of = |k: i32, client: &mut Client| {
        let found = client.query(&format!("SELECT v FROM ks.t WHERE k = {k}"));
        let right = found.is_empty() || found == [vec![Some(value(k).into_bytes())]];
        assert!(right, "row {k}: {found:?}");
        found.len()
    };
    (0..ROWS).map(|k| of(k, client)).sum()
}

/// The files that end so, in directories below `ks` that begin so: a table's own, or those of a
/// snapshot.
fn own(place: &Place, directory: &str, end: &str) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![place.data().join("data/ks")]);
    while let Some(place) = left.pop() {
        let is_wanted = place.file_name().unwrap().to_string_lossy().starts_with(directory);
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false if is_wanted && path.to_string_lossy().ends_with(end) => found.push(path),
                false => {}
            }
        }
    }
    found
}

fn damage(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

fn verify_fails(node: &Node, words: &[&str]) -> String {
    let (code, out, err) = node.nodetool(words);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.starts_with("error: corrupt "), "{err}");
    err
}

/// Damage, what verify says of it, what scrub leaves, and that the node goes on, here and after a
/// restart.
fn scrub(number: u8, options: &str, lost_at_most: usize) {
    let place = Place::new(number);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    fill(&mut client, options);
    node.verb(&["flush", "ks"]);
    node.verb(&["verify", "-f", "-e", "ks", "t"]);
    let data = own(&place, "t-", "-Data.db").remove(0);
    // the first block and one in the middle
    damage(&data, 10);
    damage(&data, std::fs::metadata(&data).unwrap().len() as usize / 2);
    verify_fails(&node, &["verify", "-f", "ks", "t"]);
    verify_fails(&node, &["verify", "-f", "-e", "ks", "t"]);
    node.verb(&["verify", "-f", "-q", "ks", "t"]);
    assert_eq!(node.verb(&["scrub", "ks", "t"]), "");
    node.verb(&["verify", "-f", "-e", "ks", "t"]);
    let left = check(&mut client);
    let lost = ROWS as usize - left;
    assert!((1..=lost_at_most).contains(&lost) && left > 0, "{lost} rows lost");
    assert_eq!(count(&mut client, "ks.t"), left as i64);
    // what was damaged is in the snapshot, as it was
    let listed = node.verb(&["listsnapshots"]);
    assert!(listed.contains("\npre-scrub-"), "{listed}");
    assert_eq!(own(&place, "pre-scrub-", "-Data.db").len(), 1);
    // a crash changes nothing
    node.signal("-KILL");
    drop(node);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    assert_eq!(check(&mut client), left);
    // of what is whole nothing is lost
    node.verb(&["scrub", "-ns", "ks", "t"]);
    assert_eq!(check(&mut client), left);
}

#[test]
fn a_scrub_loses_the_damaged_chunk_alone() {
    let options = "compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}";
    scrub(21, options, 2 * (CHUNK_BYTES / ROW_BYTES_MIN + 2));
}

#[test]
fn a_scrub_of_an_uncompressed_table_loses_a_block_alone() {
    scrub(22, "compression = {'enabled': false}", 2 * (65536 / ROW_BYTES_MIN + 2));
}

#[test]
fn a_scrub_needs_no_index() {
    let place = Place::new(23);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    fill(&mut client, "compression = {'enabled': false}");
    node.verb(&["flush", "ks"]);
    let index = own(&place, "t-", "-Index.db").remove(0);
    for at in [0, 100, 1000] {
        damage(&index, at);
    }
    verify_fails(&node, &["verify", "-f", "-q", "ks", "t"]);
    node.verb(&["scrub", "ks", "t"]);
    node.verb(&["verify", "-f", "-e", "ks", "t"]);
    assert_eq!(check(&mut client), ROWS as usize);
}

/// A partition larger than a scrub holds in memory is read twice, and is taken as a whole or not at
/// all.
#[test]
fn a_wide_partition_is_scrubbed() {
    const WIDE: i32 = 7000;
    let place = Place::new(30);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    keyspace(&mut client);
    client.query(
        "CREATE TABLE ks.w (k int, c int, v text, PRIMARY KEY (k, c)) WITH compression = {'class': 'LZ4Compressor', \
         'chunk_length_in_kb': 4}",
    );
    for c in 0..WIDE {
        client.query(&format!("INSERT INTO ks.w (k, c, v) VALUES (0, {c}, '{}')", value(c)));
    }
    client.query("DELETE FROM ks.w WHERE k = 0 AND c >= 10 AND c < 20");
    for k in 1..20 {
        client.query(&format!("INSERT INTO ks.w (k, c, v) VALUES ({k}, 0, '{}')", value(k)));
    }
    let rows = |client: &mut Client| client.query("SELECT k, c, v FROM ks.w");
    let all = rows(&mut client);
    assert_eq!(all.len(), WIDE as usize - 10 + 19);
    node.verb(&["flush", "ks"]);
    node.verb(&["scrub", "-ns", "ks", "w"]);
    node.verb(&["verify", "-f", "-e", "ks", "w"]);
    assert!(rows(&mut client) == all, "a scrub changed what is read");
    // blocks that were read while they were whole are still cached
    node.stop();
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    let data = own(&place, "w-", "nb-2-big-Data.db").remove(0);
    damage(&data, std::fs::metadata(&data).unwrap().len() as usize / 2);
    node.verb(&["scrub", "-ns", "ks", "w"]);
    let wide = &Some(0_i32.to_be_bytes().to_vec());
    let others: Vec<_> = all.into_iter().filter(|row| row[0] != *wide).collect();
    assert!(rows(&mut client) == others, "more or less than the wide partition is lost");
}

#[test]
fn partitions_out_of_order_get_a_file_of_their_own() {
    const KEYS: usize = 20;
    let place = Place::new(29);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    keyspace(&mut client);
    client.query(
        "CREATE TABLE ks.o (k int PRIMARY KEY, v int) WITH compression = {'enabled': false}",
    );
    for k in 0..KEYS {
        let time = 1000 + k;
        client.query(&format!("INSERT INTO ks.o (k, v) VALUES ({k}, {k}) USING TIMESTAMP {time}"));
    }
    node.verb(&["flush", "ks"]);
    node.stop();
    // two partitions of one length change places, as if they had been written so
    let data = own(&place, "o-", "-Data.db").remove(0);
    let mut bytes = std::fs::read(&data).unwrap();
    assert_eq!(bytes.len() % KEYS, 0);
    let length = bytes.len() / KEYS;
    let (front, back) = bytes.split_at_mut(10 * length);
    front[3 * length..4 * length].swap_with_slice(&mut back[..length]);
    std::fs::write(&data, &bytes).unwrap();
    let crc = own(&place, "o-", "-CRC.db").remove(0);
    let size = ChunkChecksums::parse(&std::fs::read(&crc).unwrap()).unwrap().chunk_size;
    let mut checksums = ChunkChecksums::new(size);
    bytes.chunks(size as usize).for_each(|chunk| checksums.push(chunk));
    std::fs::write(&crc, checksums.encode()).unwrap();
    // a Cassandra writes no checksums of that behind its summary: length of them, then eight bytes
    let summary = own(&place, "o-", "-Summary.db").remove(0);
    let mut bytes = std::fs::read(&summary).unwrap();
    let tail = bytes.len() - 12;
    let sealed = u32::from_be_bytes(bytes[tail..tail + 4].try_into().unwrap());
    bytes.truncate(tail - 4 - sealed as usize);
    std::fs::write(&summary, bytes).unwrap();
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    verify_fails(&node, &["verify", "-f", "ks", "o"]);
    node.verb(&["scrub", "ks", "o"]);
    node.verb(&["verify", "-f", "-e", "ks", "o"]);
    assert_eq!(count(&mut client, "ks.o"), KEYS as i64);
    for k in 0..KEYS as i32 {
        let found = client.query(&format!("SELECT v FROM ks.o WHERE k = {k}"));
        assert_eq!(found, [vec![Some(k.to_be_bytes().to_vec())]]);
    }
    let files: std::collections::BTreeSet<_> = own(&place, "o-", "-TOC.txt").into_iter().collect();
    assert!(files.len() >= 2, "{files:?}");
}

#[test]
fn counters_are_only_scrubbed_when_that_is_asked_for() {
    let place = Place::new(24);
    let node = place.serve(&["--set", "memtable_keeps_flushed=false"]);
    let mut client = Client::connect(&node.ip);
    keyspace(&mut client);
    client.query(
        "CREATE TABLE ks.c (k int PRIMARY KEY, v counter) WITH compression = {'class': 'LZ4Compressor', \
         'chunk_length_in_kb': 4}",
    );
    for k in 0..ROWS {
        client.query(&format!("UPDATE ks.c SET v = v + 1 WHERE k = {k}"));
    }
    node.verb(&["flush", "ks"]);
    let data = own(&place, "c-", "-Data.db").remove(0);
    damage(&data, std::fs::metadata(&data).unwrap().len() as usize / 2);
    let (code, _, err) = node.nodetool(&["scrub", "ks", "c"]);
    assert_eq!(code, 2, "{err}");
    assert!(data.exists());
    assert!(client.try_query("SELECT * FROM ks.c", Consistency::One).is_err());
    node.verb(&["scrub", "-s", "ks", "c"]);
    let left = count(&mut client, "ks.c");
    assert!(0 < left && left < i64::from(ROWS), "{left}");
}

#[test]
fn what_verify_asks_for() {
    let place = Place::new(25);
    let node = place.serve(&[]);
    Client::connect(&node.ip).fill(5);
    let (code, out, _) = node.nodetool(&["verify", "ks"]);
    assert_eq!(code, 1);
    assert!(out.starts_with("verify is disabled unless a [-f|--force] override flag"), "{out}");
    let (code, out, _) = node.nodetool(&["verify", "-f", "nosuch"]);
    assert_eq!(code, 1);
    assert!(out.starts_with("nodetool: Keyspace [nosuch] does not exist.\n"), "{out}");
    node.verb(&["flush"]);
    // every table of every keyspace, those of the system too
    node.verb(&["verify", "-f", "-e", "-c"]);
    node.verb(&["scrub", "-ns"]);
    node.verb(&["verify", "-f", "-e"]);
    let said = node.verb(&["cleanup", "-j", "9", "ks"]);
    assert_eq!(
        said,
        "jobs (9) is bigger than configured concurrent_compactors (2) on the host, using at most 2 threads\n"
    );
    assert_eq!(node.verb(&["relocatesstables", "ks", "t"]), "");
}

#[test]
fn what_is_deleted_elsewhere_is_collected() {
    let place = Place::new(26);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    fill(&mut client, "compression = {'enabled': false}");
    node.verb(&["disableautocompaction", "ks", "t"]);
    node.verb(&["flush", "ks"]);
    // a file may go at any time
    let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let bytes = || -> u64 { own(&place, "t-", "-Data.db").iter().map(length).sum() };
    let all = bytes();
    for k in 0..ROWS / 2 {
        client.query(&format!("DELETE FROM ks.t WHERE k = {k}"));
    }
    for k in ROWS / 2..ROWS {
        client.query(&format!("UPDATE ks.t SET v = '{}' WHERE k = {k}", value(k)));
    }
    node.verb(&["flush", "ks"]);
    // as long as a file that was replaced may still be read, it is there
    let falls_below = |limit: u64| {
        let deadline = std::time::Instant::now() + crate::node::PATIENCE;
        while bytes() >= limit {
            assert!(std::time::Instant::now() < deadline, "{} bytes", bytes());
            std::thread::yield_now();
        }
    };
    let with_both = bytes();
    assert_eq!(node.verb(&["garbagecollect", "ks", "t"]), "");
    falls_below(with_both - all / 4);
    assert_eq!(check(&mut client), ROWS as usize / 2);
    node.verb(&["garbagecollect", "-g", "CELL", "ks", "t"]);
    falls_below(with_both - all * 3 / 4);
    assert_eq!(check(&mut client), ROWS as usize / 2);
    node.signal("-KILL");
    drop(node);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    assert_eq!(check(&mut client), ROWS as usize / 2);
}

#[test]
fn what_is_put_into_the_directory_of_a_table_is_taken_over() {
    let place = Place::new(27);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(50);
    node.verb(&["snapshot", "-t", "one", "ks"]);
    let parts = own(&place, "one", "");
    let parts: Vec<_> =
        parts.iter().filter(|path| path.to_string_lossy().contains("-big-")).collect();
    let home = parts[0].ancestors().nth(3).unwrap();
    client.query("TRUNCATE ks.t");
    assert_eq!(count(&mut client, "ks.t"), 0);
    let put = |from: &Path, number: &str| {
        let name = from.file_name().unwrap().to_str().unwrap().replacen("nb-1-", number, 1);
        std::fs::copy(from, home.join(&name)).unwrap();
        home.join(name)
    };
    // one that is damaged is refused, and all beside it
    let mut there: Vec<PathBuf> = parts.iter().map(|path| put(path, "nb-70-")).collect();
    let data = |path: &&PathBuf| path.to_string_lossy().ends_with("-Data.db");
    let good = std::fs::read(parts.iter().find(|path| data(path)).unwrap()).unwrap();
    let bad = there.iter().find(data).unwrap().clone();
    damage(&bad, 20);
    let said = "nodetool refresh is deprecated, use nodetool import instead\n";
    let (code, out, err) = node.nodetool(&["refresh", "ks", "t"]);
    assert_eq!((code, out.as_str()), (2, said), "{err}");
    assert_eq!(count(&mut client, "ks.t"), 0);
    std::fs::write(&bad, good).unwrap();
    assert_eq!(node.verb(&["refresh", "ks", "t"]), said);
    client.check(50);
    there.retain(|path| path.exists());
    assert!(there.is_empty(), "{there:?}");
    // there is nothing more, and what is flushed gets a name of its own
    assert_eq!(node.verb(&["refresh", "ks", "t"]), said);
    client.fill(50);
    node.verb(&["flush", "ks"]);
    client.check(50);
    let (code, out, _) = node.nodetool(&["refresh", "ks"]);
    assert_eq!((code, out.starts_with(said)), (1, true));
    assert!(out.contains("nodetool: refresh requires ks and cf args\n"), "{out}");
    node.stop();
    let node = place.serve(&[]);
    Client::connect(&node.ip).check(50);
}

#[test]
fn thresholds_and_histograms_of_tables() {
    let place = Place::new(28);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(50);
    let thresholds = || node.verb(&["getcompactionthreshold", "ks", "t"]);
    assert_eq!(thresholds(), "Current compaction thresholds for ks/t: \n min = 4,  max = 32\n");
    node.verb(&["setcompactionthreshold", "ks", "t", "2", "8"]);
    assert_eq!(thresholds(), "Current compaction thresholds for ks/t: \n min = 2,  max = 8\n");
    let (code, _, err) = node.nodetool(&["getcompactionthreshold", "ks", "x"]);
    assert_eq!((code, err.as_str()), (1, "ColumnFamilyStore for ks/x not found.\n"));
    let none = node.verb(&["tablehistograms", "ks", "t"]);
    assert!(none.starts_with("No SSTables exists, unable to calculate"), "{none}");
    node.verb(&["flush", "ks"]);
    // two are enough now
    client.fill(50);
    node.verb(&["flush", "ks"]);
    let deadline = std::time::Instant::now() + crate::node::PATIENCE;
    while own(&place, "t-", "-Data.db").len() > 1 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    client.check(50);
    let text = node.verb(&["tablehistograms", "ks.t"]);
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let values = line.split_whitespace().skip(1).map(|value| value.parse::<f64>().unwrap());
        values.collect::<Vec<f64>>()
    };
    let [_, _, sstables, bytes, cells] = line("50%")[..] else { panic!("{text}") };
    assert_eq!((sstables, cells), (1.0, 1.0), "{text}");
    assert!((10.0..60.0).contains(&bytes), "{text}");
    assert!(line("Max")[0] > 0.0 && line("Max")[1] >= line("Min")[1], "{text}");
    let (code, out, _) = node.nodetool(&["tablehistograms", "ks", "x"]);
    assert_eq!(code, 1);
    assert!(out.starts_with("nodetool: Unknown table ks.x\n"), "{out}");
}
