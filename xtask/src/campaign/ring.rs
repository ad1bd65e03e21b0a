//! `cargo xtask campaign ring`: rings of Cassandra and Helenus, in one data centre and in two, and
//! the corpus through each of their nodes. Recorded under `docs/campaigns/`.

use std::fmt::Write as _;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::members::{self, Layout, Member};
use crate::peer::{ORACLE_HEAP, Peer};
use crate::{oracle, ring};

/// Of writes, and of reads.
const LEVELS: [(&str, &str); 2] = [("ALL", "ONE"), ("QUORUM", "QUORUM")];
/// Statements at LOCAL_SERIAL, of keyspaces with three replicas anywhere: in a data centre with one
/// node Cassandra refuses them, whoever the others are.
const OF_CENTERS: [&str; 3] = [" lwt.cql:72:", " lwt.cql:74:", " lwt.cql:80:"];
/// The number of the address where a Cassandra of an older release is alone, whose answers are
/// right.
const ALONE: u8 = 40;

/// `campaign ring [RELEASE [OURS THEIRS CENTERS [FILE...]]]`: one ring, or all; of the corpus these
/// files, or what a stage has of it.
pub fn campaign(words: &[&str]) -> Outcome {
    let number = |text: &str| text.parse::<u8>().map_err(|_| format!("{text} is no number"));
    let all = |release| {
        let of = |(ours, theirs, centers)| Layout {
            ours,
            theirs,
            release,
            centers,
            ..Layout::default()
        };
        [(1, 2, 1), (2, 1, 1), (1, 2, 2), (2, 1, 2)].map(of).to_vec()
    };
    let layouts = match words {
        [] => [all(members::known_release("5.0")?), all(members::known_release("4.1")?)].concat(),
        [release] => all(members::known_release(release)?),
        [release, ours, theirs, centers, ..] => vec![Layout {
            ours: number(ours)?,
            theirs: number(theirs)?,
            release: members::known_release(release)?,
            centers: number(centers)?.max(1),
            ..Layout::default()
        }],
        _ => return Err(super::USAGE.into()),
    };
    let files = words.get(4..).filter(|files| !files.is_empty()).unwrap_or(ring::FILES);
    let begun = Instant::now();
    let (mut text, mut is_good) = (String::new(), true);
    for layout in &layouts {
        is_good &= one(layout, files, &mut text)?;
    }
    let text = format!(
        "Commit {}; {} s. Again: `cargo xtask campaign ring {}`. Found: {}.\n\n{text}",
        super::commit()?,
        begun.elapsed().as_secs(),
        words.join(" "),
        if is_good { "nothing wrong" } else { "differences, named below" },
    );
    println!("recorded in {}", super::record(&super::named("ring", words), &text)?.display());
    if is_good { Ok(()) } else { Err("not all is as it should be".into()) }
}

/// The corpus through each node of a ring: is all as it should be?
fn one(layout: &Layout, files: &[&str], text: &mut String) -> Outcome<bool> {
    let Layout { ours, theirs, release, centers, .. } = layout;
    let nodes = layout.members().len();
    writeln!(
        text,
        "## {theirs} Cassandra {release}, {ours} Helenus, data centres: {centers}\n\n\
         | through | written at | read at | statements | differ | reads of a Cassandra that found replicas differing |\n\
         |---|---|---|---|---|---|"
    )?;
    let is_older = !release.starts_with("5.");
    let alone = match is_older {
        false => None,
        true => Some(Peer::start_with(
            &members::named("ring-alone"),
            &members::loopback(ALONE),
            ORACLE_HEAP,
            &[("CASSANDRA_VERSION", release.as_ref())],
        )?),
    };
    let members = members::start(layout)?;
    for member in &members {
        ring::until_up(&member.ip, nodes, || member.nodetool("status"))?;
    }
    let mut is_good = true;
    let mut named = Vec::new();
    for (level, reads) in LEVELS {
        for member in &members {
            let before = mismatches(&members)?;
            let mut command = oracle::command();
            command.args(["--replicas", &nodes.to_string(), "--level", level, "--reads", reads]);
            for known in [ring::KNOWN, oracle::KNOWN_DIFFERENCES] {
                command.arg("--known").arg(machine::root().join(known));
            }
            match &alone {
                None => command.args(["--golden", &member.ip]),
                Some(alone) => command.args(["--older", &member.ip, &alone.ip]),
            };
            let (_, said) = machine::output(command.args(files))?;
            let last = said.lines().rev().find(|line| line.contains(" statements compared"));
            let mut different = oracle::different(&said);
            if *centers > 1 {
                different.retain(|line| !OF_CENTERS.iter().any(|known| line.contains(known)));
            }
            let found = mismatches(&members)?.saturating_sub(before);
            let what = if member.is_ours { "Helenus" } else { "Cassandra" };
            writeln!(
                text,
                "| {what} {} {} | {level} | {reads} | {} | {} | {found} |",
                member.ip,
                member.center,
                last.and_then(|line| line.split(' ').next()).unwrap_or("none"),
                different.len(),
            )?;
            // at a quorum the third may not have it yet
            is_good &= last.is_some() && different.is_empty() && (found == 0 || level != "ALL");
            named.extend(different.into_iter().map(|line| format!("{what}, {level}: {line}")));
        }
    }
    for member in &members {
        let up = ring::up_and_normal(&member.nodetool("status")?);
        let one_schema = ring::sees_one_schema(|| member.nodetool("describecluster"))?;
        is_good &= up == nodes && one_schema;
        let schemas = if one_schema { "one schema" } else { "several schemas" };
        writeln!(text, "\n{} sees {up} nodes up and normal, and {schemas}", member.ip)?;
    }
    for what in named {
        writeln!(text, "\n    {}", what.replace('\n', "\n    "))?;
    }
    writeln!(text)?;
    members::stop()?;
    Ok(is_good)
}

/// Reads that found replicas that differ, as the nodes of Cassandra count them.
fn mismatches(members: &[Member]) -> Outcome<u64> {
    let theirs = members.iter().filter(|member| !member.is_ours);
    let counts = theirs.map(|member| Ok(ring::mismatches(&member.nodetool("netstats")?)));
    let counts: Outcome<Vec<Option<u64>>> = counts.collect();
    Ok(counts?.into_iter().flatten().sum())
}
