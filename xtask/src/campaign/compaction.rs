//! `cargo xtask campaign compaction`: choices beside those of Cassandra's own classes over sets
//! that nobody has seen before, and whole days of load in simulated time. Recorded under
//! `docs/campaigns/`; the tests of crate `storage` do the same with recorded choices and shorter
//! days.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::{peer, programs};

/// Scenarios of each strategy, where no number is given.
const SCENARIOS: u64 = 1000;
/// Days of each kind of table.
const DAYS: u64 = 3;

/// `campaign compaction [SEED] [SCENARIOS]`
pub fn campaign(words: &[&str]) -> Outcome {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    let (seed, count) = match words {
        [] => (super::drawn()?, SCENARIOS),
        [seed] => (number(seed)?, SCENARIOS),
        [seed, count] => (number(seed)?, number(count)?),
        _ => return Err(super::USAGE.into()),
    };
    let begun = Instant::now();
    let program = program()?;
    let answers = answers(seed, count)?;
    let (alike, compared) =
        machine::output(Command::new(&program).arg("answers").stdin(File::open(&answers)?))?;
    let (held, days) = machine::output(Command::new(&program).args([
        "days",
        &seed.to_string(),
        &DAYS.to_string(),
    ]))?;
    let text = format!(
        "Commit {}, seed {seed}, {} s.\n\n{count} scenarios of each strategy, chosen by Cassandra 5.0.9's classes \
         and here:\n\n```\n{compared}```\n\n{DAYS} days of each kind of table:\n\n```\n{days}```\n",
        super::commit()?,
        begun.elapsed().as_secs(),
    );
    let path = super::record(&format!("compaction-{seed}"), &text)?;
    println!("{}", path.display());
    if alike && held { Ok(()) } else { Err("not all is as it should be".into()) }
}

/// The program that compares and simulates.
fn program() -> Outcome<PathBuf> {
    programs::checked_example("compaction")
}

/// What Cassandra chooses over the scenarios of a seed.
fn answers(seed: u64, count: u64) -> Outcome<PathBuf> {
    machine::need(&["bash", "java", "mvn"])?;
    let folder = machine::cache().join("run/strategies");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("answers.txt");
    let mut script = peer::script();
    script.arg("run").arg(machine::root().join("conformance/strategies"));
    script.arg("org.apache.cassandra.db.compaction.Choose").arg(&folder).arg(&file);
    machine::run(script.args([seed.to_string(), count.to_string()]))?;
    Ok(file)
}
