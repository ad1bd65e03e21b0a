//! Compares choices with those that Cassandra's own classes made over the same sets
//! (`conformance/strategies`).

use std::collections::BTreeMap;
use std::fmt;

use schema::CompactionParams;
use storage::compaction::{Candidate, Choice, Split, Strategy, View, boundary, shard_of};
use storage::{PartitionKey, RepairStatus};
use types::Token;

/// When every scenario begins.
const START_MILLIS: i64 = 1_700_000_000_000;

/// What was compared, by strategy: choices, and those that chose something.
#[derive(Debug, Default)]
pub struct Tally {
    pub choices: BTreeMap<String, (u64, u64)>,
    pub boundaries: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, (all, some)) in &self.choices {
            writeln!(f, "{name:<30} {all:>6} choices alike, {some:>6} of them of something")?;
        }
        writeln!(f, "{:<30} {:>6} tokens in the same shard of the ring", "", self.boundaries)
    }
}

/// A scenario under way.
struct Scenario {
    name: String,
    strategy: Strategy,
    tables: Vec<Candidate>,
    /// Keys of a table that others may have too; `None` where its sample is too small to say.
    shared: BTreeMap<u64, Option<u64>>,
    now_millis: i64,
    gc_before: i64,
    flush_bytes: f64,
    gone: Vec<Candidate>,
    added: Vec<Candidate>,
}

/// What Cassandra chose.
#[derive(Debug, PartialEq)]
struct Answer {
    inputs: Vec<u64>,
    level: usize,
    /// Bytes of an output; 0 for no limit.
    limit: u64,
    shards: u32,
    pending: usize,
}

impl Scenario {
    fn new(words: &[&str]) -> Self {
        let name = words[1].to_owned();
        let options = words[2..].iter().map(|word| word.split_once('=').expect(word));
        let mut options: BTreeMap<String, String> =
            options.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        for (name, default) in [("min_threshold", "4"), ("max_threshold", "32")] {
            options.entry(name.to_owned()).or_insert_with(|| default.to_owned());
        }
        let class = format!("org.apache.cassandra.db.compaction.{name}");
        Self {
            name,
            strategy: Strategy::new(&CompactionParams::new(class, options), START_MILLIS),
            tables: Vec::new(),
            shared: BTreeMap::new(),
            now_millis: 0,
            gc_before: 0,
            flush_bytes: f64::NAN,
            gone: Vec::new(),
            added: Vec::new(),
        }
    }

    fn table(&mut self, words: &[&str]) -> Candidate {
        let int = |at: usize| words[at].parse::<i64>().expect(words[at]);
        let double = |at: usize| words[at].parse::<f64>().expect(words[at]);
        let key =
            |at: usize| PartitionKey { token: Token(int(at)), bytes: int(at).to_be_bytes().into() };
        let id = int(0) as u64;
        self.shared.insert(id, u64::try_from(int(13)).ok());
        Candidate {
            id,
            first: key(1),
            last: key(2),
            data_bytes: int(3) as u64,
            total_bytes: int(4) as u64,
            min_timestamp: int(5),
            max_timestamp: int(6),
            max_local_deletion_time: int(7),
            created_millis: int(8),
            level: int(9) as usize,
            repair: RepairStatus::of(int(10), None),
            droppable_ratio: double(11),
            keys: int(12) as u64,
            cells: (int(14), int(15)),
            hotness: double(16),
            is_compacting: false,
        }
    }

    fn view<T>(&mut self, with: impl FnOnce(&mut Strategy, &View<'_>) -> T) -> T {
        let shared = &self.shared;
        let keys_in = |id: u64, _: &[(Token, Token)]| shared.get(&id).copied().flatten();
        let view = View {
            tables: &self.tables,
            now_millis: self.now_millis,
            gc_before: self.gc_before,
            memtable_min_timestamp: i64::MAX,
            flush_bytes: self.flush_bytes,
            keys_in: &keys_in,
            random: &|_| 0,
        };
        with(&mut self.strategy, &view)
    }

    fn choose(&mut self) -> Answer {
        let displaced = self.view(|strategy, view| strategy.displaced(view));
        for table in self.tables.iter_mut().filter(|table| displaced.contains(&table.id)) {
            table.level = 0;
        }
        let choice = self.view(|strategy, view| strategy.next(view));
        let pending = self.view(|strategy, view| strategy.pending(view));
        let Some(Choice { mut inputs, level, split, .. }) = choice else {
            return Answer { inputs: Vec::new(), level: 0, limit: 0, shards: 1, pending };
        };
        inputs.sort_unstable();
        let limit = if let Split::Size(limit) = split { limit } else { 0 };
        let shards = if let Split::Shards(shards) = split { shards } else { 1 };
        Answer { inputs, level, limit, shards, pending }
    }
}

fn numbers(words: &[&str]) -> Vec<u64> {
    words.iter().map(|word| word.parse().expect(word)).collect()
}

fn answer(words: &[&str]) -> Answer {
    let ints = numbers(&words[..4]);
    Answer {
        pending: ints[0] as usize,
        level: ints[1] as usize,
        limit: ints[2],
        shards: ints[3] as u32,
        inputs: numbers(&words[5..]),
    }
}

/// Goes through what Cassandra wrote down; an error where a choice differs.
pub fn compare(text: &str) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut scenario: Option<Scenario> = None;
    let mut case = "";
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let rest = &words[1..];
        if words[0] == "case" {
            (case, scenario) = (line, Some(Scenario::new(rest)));
            continue;
        }
        if words[0] == "shard" {
            let (shards, token) =
                (rest[0].parse().expect("count"), rest[1].parse().expect("token"));
            let shard = shard_of(Token(token), shards);
            let end = if shard + 1 == shards {
                "end".to_owned()
            } else {
                boundary(shard + 1, shards).0.to_string()
            };
            if (shard.to_string().as_str(), end.as_str()) != (rest[2], rest[3]) {
                return Err(format!("line {}: {line}: not {shard} {end}", number + 1));
            }
            tally.boundaries += 1;
            continue;
        }
        let Some(scenario) = &mut scenario else { return Err("no case".into()) };
        match words[0] {
            "t" => {
                let table = scenario.table(rest);
                scenario.tables.push(table);
            }
            "at" => {
                scenario.now_millis = rest[0].parse().expect("time");
                scenario.gc_before = rest[1].parse().expect("time");
                scenario.flush_bytes = rest[2].parse().expect("bytes");
            }
            "pick" => {
                let (mut ours, theirs) = (scenario.choose(), answer(rest));
                // Cassandra counts what is left to do when it looks for expired tables, which is
                // not always; here whoever asks counts, and does not look for them.
                let gone = scenario.gc_before;
                let is_old = |table: &&Candidate| table.max_local_deletion_time < gone;
                let mut chosen = scenario.tables.iter().filter(|t| ours.inputs.contains(&t.id));
                if chosen.any(|table| is_old(&table)) {
                    ours.pending = theirs.pending;
                }
                if ours != theirs {
                    let at = format!("line {}, {case}", number + 1);
                    return Err(format!("{at}:\nours   {ours:?}\ntheirs {theirs:?}"));
                }
                let entry = tally.choices.entry(scenario.name.clone()).or_default();
                entry.0 += 1;
                entry.1 += u64::from(!ours.inputs.is_empty());
            }
            "busy" => {
                let ids = numbers(rest);
                let busy = scenario.tables.iter_mut().filter(|table| ids.contains(&table.id));
                busy.for_each(|table| table.is_compacting = true);
            }
            "gone" => {
                let ids = numbers(rest);
                let (gone, left) =
                    scenario.tables.drain(..).partition(|table| ids.contains(&table.id));
                (scenario.gone, scenario.tables) = (gone, left);
            }
            "o" => {
                let table = scenario.table(rest);
                scenario.added.push(table.clone());
                scenario.tables.push(table);
            }
            "done" => {
                let removed = std::mem::take(&mut scenario.gone);
                let added = std::mem::take(&mut scenario.added);
                scenario.strategy.replaced(&removed, &added);
            }
            word => return Err(format!("line {}: {word}", number + 1)),
        }
    }
    Ok(tally)
}
