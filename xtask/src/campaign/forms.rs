//! `campaign forms`: the corpus in every form (`conformance/forms`) - each SELECT in pages,
//! prepared, in the other order, each modification prepared, in batches, as JSON, with conditions,
//! functions that are not pure wherever they may stand - on nodes with one to three shards, with
//! data in memory and in files, and through each node of rings.

use std::process::Command;
use std::thread;

use crate::machine::{self, Outcome};
use crate::node;
use crate::oracle;
use crate::ring;

/// The addresses of the nodes, and of those of a second run beside the first.
const ADDRESSES: [&str; 2] =
    ["127.0.0.91,127.0.0.92,127.0.0.93", "127.0.0.94,127.0.0.95,127.0.0.96"];
/// One form of a read in so many is asked on each layout, where no number is given: another on
/// each. The files have a million forms, so this is an hour on two cores.
const SHARE: &str = "400";

/// A run of the driver: what of it, and with which options.
type Part = (&'static str, &'static [&'static str]);

/// Files with very many values, which a stage has no time for.
const LARGE: &str = "value_edges,value_functions";

/// What a stage has of it: always the same.
const SHORT: &[Part] = &[
    ("reads", &["--places", "memory", "--shards", "2", "--share", "400", "--without", LARGE]),
    ("reads", &["--places", "half", "--shards", "3", "--share", "800", "--without", LARGE]),
    (
        "reads",
        &[
            "--places",
            "",
            "--rings",
            "1,3",
            "--share",
            "400",
            "aggregates",
            "gen_paging",
            "lwt",
            "select",
        ],
    ),
    ("writes", &["--places", "memory", "--shards", "2", "--share", "28", "--without", LARGE]),
    ("writes", &["--places", "", "--rings", "3", "--share", "16", "collections", "dml"]),
    ("functions", &["--places", "memory", "--shards", "3", "--share", "3", "--count", "20"]),
    ("functions", &["--places", "", "--rings", "3", "--share", "12", "--count", "12"]),
];

/// What a campaign has of the reads: data in memory with each number of shards, and each other
/// place with one of them. Those in files leave the largest files out: each of their thousands of
/// statements would be a flush.
const READS: &[Part] = &[
    ("reads", &["--places", "memory", "--shards", "1,2,3"]),
    ("reads", &["--places", "kept,several", "--shards", "2", "--without", LARGE]),
    ("reads", &["--places", "one,half", "--shards", "1", "--without", LARGE]),
    ("reads", &["--places", "compacted", "--shards", "3", "--without", LARGE]),
    ("reads", &["--places", "", "--rings", "1,3", "--without", LARGE]),
];

/// And of the rest. Of writes a share is one of the tellings of a file, each with all its
/// statements.
const OTHERS: &[Part] = &[
    ("writes", &["--places", "memory", "--shards", "1,3", "--share", "2", "--without", LARGE]),
    ("writes", &["--places", "several", "--shards", "1,3", "--share", "10", "--without", LARGE]),
    ("writes", &["--places", "", "--rings", "1,3", "--share", "10", "--without", LARGE]),
    ("functions", &["--places", "memory", "--shards", "1,2,3", "--rings", "1,3"]),
];

/// `campaign forms [SHARE]`: one form of a read in so many on each layout, and beside that, at the
/// same time, a share of the writes and all functions. `campaign forms --planted [PLANT...]`.
/// Recorded under `docs/campaigns/`.
pub fn campaign(words: &[&str]) -> Outcome {
    if let ["--planted", plants @ ..] = words {
        built()?;
        let (found, table) = part("planted", plants, 0)?;
        let text = format!(
            "Commit {}. Each fault was put between the driver and the nodes: in how many forms it showed, and the first of them.\n\n```\n{table}```\n",
            super::commit()?
        );
        super::record("forms-planted", &text)?;
        return if found { Ok(()) } else { Err("not every fault was found".into()) };
    }
    let share = match words {
        [] => SHARE,
        [share] if share.parse::<u32>().is_ok() => share,
        _ => return Err(super::USAGE.into()),
    };
    built()?;
    let reads =
        || READS.iter().map(|(what, of)| part(what, &[*of, &["--share", share][..]].concat(), 0));
    let runs = thread::scope(|scope| {
        // an error of one lane is told as text, since it goes from thread to thread
        let reads = scope.spawn(|| reads().collect::<Outcome<Vec<_>>>().map_err(|e| e.to_string()));
        let others = OTHERS.iter().map(|(what, of)| part(what, of, 1)).collect::<Outcome<Vec<_>>>();
        let mut runs = reads.join().map_err(|_| "the reads panicked")??;
        runs.extend(others?);
        Ok::<_, Box<dyn std::error::Error>>(runs)
    })?;
    let done = runs.iter().all(|(done, _)| *done);
    let texts: Vec<String> = runs.iter().map(|(_, text)| kept(text)).collect();
    let text = format!(
        "Commit {}. Of the forms of reads one in {share} on each layout, another on each.\n\n```\n{}```\n",
        super::commit()?,
        texts.join("\n")
    );
    super::record("forms", &text)?;
    if done { Ok(()) } else { Err("forms of a statement differ".into()) }
}

/// What a record keeps: a line a layout and file is too much.
fn kept(text: &str) -> String {
    let is_kept = |line: &&str| !line.contains(" forms, ") || line.contains(" statements compared");
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// A fixed share of it: (did all go well, what was printed) of each part.
pub fn short() -> Outcome<Vec<(bool, String)>> {
    built()?;
    SHORT.iter().map(|(what, options)| part(what, options, 0)).collect()
}

fn built() -> Outcome {
    machine::need(&["python3"])?;
    node::build()?;
    node::build_nodetool()
}

/// A run of the driver on nodes of its own, the first or the second lot.
fn part(what: &str, options: &[&str], lot: usize) -> Outcome<(bool, String)> {
    println!("== {what} {}", options.join(" "));
    let mut python = Command::new("python3");
    python.arg(machine::root().join("conformance/forms/forms.py")).arg(what);
    python.arg("--node").arg(node::command().get_program());
    python.arg("--nodetool").arg(node::nodetool_path());
    python
        .arg("--dir")
        .arg(machine::cache().join(format!("run/forms-{lot}")))
        .args(["--ips", ADDRESSES[lot]]);
    for known in [oracle::KNOWN_DIFFERENCES, ring::KNOWN] {
        python.arg("--known").arg(machine::root().join(known));
    }
    machine::output(python.args(options))
}
