//! Files of queues against those that Chronicle Queue 5.23.37 wrote of the same records
//! (conformance/audit/Queues.java).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;

use audit::{Appender, Damaged, Queried, QueryRecord, RollCycle, Table};

const CHRONICLES: &str = include_str!("../testdata/queues-5.23.37.txt");
const TIME: i64 = 1_795_989_621_000;

/// The record of that number.
fn record(n: usize) -> Vec<u8> {
    let text = "\u{e9}\u{1f600}x".repeat(n);
    let last = [1, 2, n as u8];
    let queried = match n % 4 {
        3 => Queried::Batch("LOGGED", vec![&text, ""], vec![vec![Some(&last), None], vec![]]),
        _ => Queried::Single(&text),
    };
    let (keyspace, options) = ("k".repeat(n), vec![0; n * 17]);
    QueryRecord {
        start_millis: TIME + n as i64,
        version: 4,
        options: &options,
        timestamp: Some(TIME * 1000 + n as i64),
        now_seconds: Some((TIME / 1000) as i32 + n as i32),
        keyspace: (n % 2 == 1).then_some(&keyspace),
        queried,
    }
    .encode()
}

/// A file in memory.
#[derive(Clone, Default)]
struct File(Vec<u8>);

impl File {
    fn write(&mut self, at: u64, bytes: &[u8]) {
        let (at, end) = (at as usize, at as usize + bytes.len());
        self.0.resize(self.0.len().max(end), 0);
        self.0[at..end].copy_from_slice(bytes);
    }

    fn take(&mut self, appender: &mut Appender) {
        for write in appender.take() {
            self.write(write.at, &write.bytes);
        }
    }

    fn resume(&self, cycle: RollCycle) -> Result<Appender, Damaged> {
        let mut read = |at: u64, to: &mut [u8]| {
            let rest = self.0.get(at as usize..).unwrap_or_default();
            let length = rest.len().min(to.len());
            to[..length].copy_from_slice(&rest[..length]);
            Ok::<_, Infallible>(length)
        };
        Appender::resume(cycle, self.0.len() as u64, &mut read).unwrap()
    }

    /// Each stretch of 16 bytes that has anything.
    fn runs(&self) -> String {
        let mut out = String::new();
        for (n, line) in self.0.chunks(16).enumerate() {
            if line.iter().any(|byte| *byte != 0) {
                let mut line = line.to_vec();
                line.resize(16, 0);
                let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
                let _ = writeln!(out, "{:x} {hex}", n * 16);
            }
        }
        out
    }
}

/// What Chronicle's files have, by cycle and name.
fn chronicles() -> BTreeMap<(&'static str, &'static str), String> {
    let mut files = BTreeMap::new();
    let mut current = String::new();
    let mut head = None;
    for line in CHRONICLES.lines().chain(["end of them"]) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [cycle, name, _] => {
                let before = head.replace((cycle, name));
                files.extend(before.map(|head| (head, std::mem::take(&mut current))));
            }
            _ => {
                current.push_str(line);
                current.push('\n');
            }
        }
    }
    files
}

#[test]
fn files_are_those_of_chronicle() {
    let expected = chronicles();
    let cycles: Vec<&str> = expected.keys().map(|(cycle, _)| *cycle).collect();
    assert_eq!(cycles.len(), 12);
    for cycle in cycles {
        let cycle = RollCycle::of(cycle).unwrap();
        // all at once, and one at a time by those who come back
        for at_once in [true, false] {
            let (mut appender, begin) = Appender::create(cycle);
            let mut file = File(begin);
            for n in 0..20 {
                assert!(appender.append(&record(n)));
                if !at_once {
                    file.take(&mut appender);
                    appender = file.resume(cycle).unwrap();
                }
            }
            file.take(&mut appender);
            let name = cycle.file_name(cycle.at(TIME));
            assert_eq!(file.runs(), expected[&(cycle.name, name.as_str())], "{cycle:?} {at_once}");
            assert_eq!(appender.records(), 20);
            assert_eq!(appender.file_bytes(), audit::FILE_BYTES);
        }
        let number = cycle.at(TIME);
        let table = Table { cycle, lowest: number, highest: number, changes: 3 }.encode();
        assert_eq!(table.len(), 128 << 10);
        assert!(Table::rolls_so(cycle, &table));
        assert_eq!(File(table).runs(), expected[&(cycle.name, Table::FILE)], "{cycle:?}");
    }
}

#[test]
fn a_full_page_of_the_index_has_another_behind_it() {
    let cycle = RollCycle::of("MINUTELY").unwrap();
    let (mut appender, begin) = Appender::create(cycle);
    let mut file = File(begin);
    let of_page = u64::from(cycle.index_count) * u64::from(cycle.index_spacing);
    for n in 0..=of_page {
        assert!(appender.append(&[n as u8 | 1; 3]));
    }
    file.take(&mut appender);
    let word = |at: u64| {
        let at = at as usize;
        u64::from_le_bytes(file.0[at..at + 8].try_into().unwrap())
    };
    assert_eq!(word(0xe8), 2, "two pages");
    let (first, second) = (word(0xf0), word(0xf8));
    assert_eq!(word(first + 24), u64::from(cycle.index_count), "the first is full");
    let entries = (second + 12).next_multiple_of(8) + 16;
    assert_eq!((word(entries - 8), word(entries)), (1, appender.end() - 8));
    let resumed = file.resume(cycle).unwrap();
    assert_eq!((resumed.records(), resumed.end()), (of_page + 1, appender.end()));
}

#[test]
fn what_is_read_back_is_not_trusted() {
    let cycle = RollCycle::of("HOURLY").unwrap();
    let (mut appender, begin) = Appender::create(cycle);
    let end = begin.len();
    let mut file = File(begin);
    (0..3).for_each(|n| assert!(appender.append(&record(n))));
    file.take(&mut appender);
    assert_eq!(file.resume(RollCycle::of("DAILY").unwrap()).err(), Some(Damaged::Foreign));
    assert_eq!(File::default().resume(cycle).err(), Some(Damaged::Foreign));
    for word in [u32::MAX, 1 << 31, (1 << 30) - 1, (2 << 30) - 1, 1 << 20] {
        let mut torn = file.clone();
        torn.write(end as u64, &word.to_le_bytes());
        assert_eq!(torn.resume(cycle).err(), Some(Damaged::Torn(end as u64)), "{word:x}");
    }
    // a cut is found, or is where the records end
    for length in end..file.0.len() {
        let mut cut = file.clone();
        cut.0.truncate(length);
        let _ = cut.resume(cycle);
    }
    let finish = appender.finish();
    file.write(finish.at, &finish.bytes);
    assert_eq!(file.resume(cycle).unwrap().end(), finish.at, "its end is no record");
    assert!(!appender.append(&[]), "no record is empty");
}
