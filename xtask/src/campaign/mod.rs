//! `cargo xtask campaign NAME`: the long runs, most of them with new seeds and recorded under
//! `docs/campaigns/`.

mod apart;
mod applications;
mod compaction;
mod differences;
mod elastic;
mod faults;
pub mod files;
pub mod forms;
pub mod fuzz;
pub mod hostile;
mod images;
mod oracle;
pub mod power;
pub mod repair;
mod replace;
mod ring;
mod roundtrip;
pub mod seeds;
pub mod streams;
pub mod tools;
mod wide;
mod yaml;

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::machine::{self, Outcome};

/// Drawn seeds begin below this: short enough to be typed.
const FROM_MAX: u64 = 1_000_000_000;

const USAGE: &str = "campaign KIND [FROM] [COUNT] | campaign KIND --resume (KIND: seeds | engine | \
                     conditions | ring-seeds | elastic-seeds | repair-seeds) | \
                     campaign planted [BUG] | campaign power [OPTIONS] | campaign roundtrip | \
                     campaign files [SEED [TABLES [compact]]] | campaign files record | \
                     campaign fuzz [RUNS] [--seed N] | campaign hostile [SECONDS] | \
                     campaign oracle [--seed N] [--rounds N] | campaign differences | \
                     campaign applications [HOST] | campaign tools [SCRIPT...] | \
                     campaign yaml FOLDER | campaign compaction [SEED] [SCENARIOS] | \
                     campaign images [SEED [IMAGES]] | campaign wide [ROWS] | \
                     campaign ring [RELEASE [OURS THEIRS CENTERS [FILE...]]] | campaign replace [RELEASE] | campaign streams [RELEASE] | \
                     campaign repair RELEASE [--with incremental] [--only NAME | --list] | \
                     campaign elastic RELEASE [--only NAME] | campaign elastic RELEASE --list | \
                     campaign kills [COUNT [SEED]] | \
                     campaign faults [SECONDS [FAULT]] | campaign apart [SECONDS] | \
                     campaign forms [SHARE] | campaign forms --planted [PLANT...]";

/// `campaign NAME [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [
            kind @ ("seeds" | "engine" | "conditions" | "ring-seeds" | "elastic-seeds"
            | "repair-seeds"),
            ref rest @ ..,
        ] => seeds::run(kind, rest),
        ["planted", ..] => machine::run(seeds::simulator()?.args(args)),
        ["power", ..] => power::campaign(&args[1..]),
        ["differences"] => differences::campaign(),
        ["forms", ref rest @ ..] => forms::campaign(rest),
        ["oracle", ..] => oracle::run(&args[1..]),
        ["fuzz", ref rest @ ..] => fuzz::campaign(rest),
        ["hostile", ref rest @ ..] => hostile::campaign(rest),
        ["compaction", ref rest @ ..] => compaction::campaign(rest),
        ["images", ref rest @ ..] => images::campaign(rest),
        ["applications", ref rest @ ..] => applications::campaign(rest),
        ["tools", ref rest @ ..] => tools::campaign(rest),
        ["yaml", ref rest @ ..] => yaml::campaign(rest),
        ["wide", ref rest @ ..] => wide::campaign(rest),
        ["ring", ref rest @ ..] => ring::campaign(rest),
        ["faults", ref rest @ ..] => faults::campaign(rest),
        ["apart", ref rest @ ..] => apart::campaign(rest),
        ["replace", ref rest @ ..] => replace::campaign(rest),
        ["streams", ref rest @ ..] => streams::campaign(rest),
        ["repair", ref rest @ ..] => repair::campaign(rest),
        ["elastic", ref rest @ ..] => elastic::campaign(rest),
        ["kills", ref rest @ ..] => elastic::kills::campaign(rest),
        ["roundtrip"] => roundtrip::campaign(),
        ["files", ref rest @ ..] => files::campaign(rest),
        _ => Err(USAGE.into()),
    }
}

/// A seed that nobody chose.
fn drawn() -> Outcome<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::from(now.subsec_nanos()).wrapping_add(now.as_secs()) % FROM_MAX)
}

fn words(command: &mut Command) -> Outcome<String> {
    let output = command.current_dir(machine::root()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The name of a campaign's record, after what was asked for.
fn named(kind: &str, words: &[&str]) -> String {
    [&[kind], words].concat().join("-")
}

/// Writes `docs/campaigns/DATE-NAME.md`.
fn record(name: &str, text: &str) -> Outcome<PathBuf> {
    let date = words(Command::new("date").arg("+%Y-%m-%d"))?;
    let folder = machine::root().join("docs/campaigns");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{date}-{name}.md"));
    std::fs::write(&path, format!("# Campaign `{name}` of {date}\n\n{text}"))?;
    Ok(path)
}

/// The commit, and whether the tree holds more than that.
fn commit() -> Outcome<String> {
    let commit = words(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]))?;
    let changed = words(Command::new("git").args(["status", "--porcelain", "--", ":!docs"]))?;
    Ok(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}
