//! `cargo xtask campaign replace`: the nodes of a Cassandra ring become Helenus one by one, on
//! their own directories, and Cassandra again, while clients read and write. Recorded under
//! `docs/campaigns/`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::clients::Clients;
use crate::load;
use crate::machine::Outcome;
use crate::members::{self, End, Layout, Member};
use crate::{peer, ring};

const NODES: u8 = 3;
/// How long the clients have the ring to themselves between two changes.
const QUIET: Duration = Duration::from_secs(5);
/// Requests a second: three Cassandras that start one after another leave room for few.
const RATE: &str = "150";
/// Seconds of writes that a node misses.
const HINTS_GATHER: u64 = 10;

/// `campaign replace [RELEASE]`
pub fn campaign(words: &[&str]) -> Outcome {
    let release = match words {
        [] => members::known_release("5.0")?,
        [release] => members::known_release(release)?,
        _ => return Err(super::USAGE.into()),
    };
    let layout = Layout { theirs: NODES, release, ..Layout::default() };
    let begun = Instant::now();
    load::build()?;
    let mut members = members::start_with(&layout, peer::ORACLE_HEAP)?;
    all_up(&members)?;
    let mut clients = Clients::start(&members, &["--rate", RATE])?;
    let mut text = String::from(
        "| node | becomes | its predecessor was | serves after | all are up after |\n|---|---|---|---|---|\n",
    );
    for how in [End::Drained, End::Killed] {
        for to_ours in [true, false] {
            for at in 0..members.len() {
                swap(&mut members, at, to_ours, how, &layout, &mut text)?;
                clients.window()?;
            }
        }
    }
    let (mut is_good, said) = clients.end()?;
    let left = left_hints(&mut members, &layout)?;
    is_good &= left == 0;
    writeln!(
        text,
        "\nHints for a node that is down, of a node that is replaced meanwhile by the other system, in both directions: \
         {left} reads of all rows at ALL found replicas that differ once they were delivered."
    )?;
    for member in &members {
        let up = ring::up_and_normal(&member.nodetool("status")?);
        writeln!(text, "\n{} sees {up} of {NODES} nodes up and normal", member.ip)?;
    }
    let text = format!(
        "Commit {}; Cassandra {release}; {} s. Again: `cargo xtask campaign replace {}`. Found: {}.\n\n{text}\nThe clients: `{said}`\n",
        super::commit()?,
        begun.elapsed().as_secs(),
        words.join(" "),
        if is_good { "nothing wrong" } else { "failed requests or wrong rows" },
    );
    println!("recorded in {}", super::record(&super::named("replace", words), &text)?.display());
    members::stop()?;
    if is_good { Ok(()) } else { Err(said.into()) }
}

/// One node ends, and the other system starts in its place.
fn swap(
    members: &mut [Member],
    at: usize,
    to_ours: bool,
    how: End,
    layout: &Layout,
    text: &mut String,
) -> Outcome {
    let member = members.get_mut(at).ok_or("no such node")?;
    std::thread::sleep(QUIET);
    let what = if to_ours { "Helenus" } else { "Cassandra" };
    println!("{} becomes {what}; its predecessor is {how:?}", member.ip);
    let begun = Instant::now();
    member.end(how)?;
    member.is_ours = to_ours;
    member.start_in_place(layout)?;
    let (ip, served) = (member.ip.clone(), begun.elapsed());
    all_up(members)?;
    writeln!(
        text,
        "| {ip} | {what} | {how:?} | {:.1} s | {:.1} s |",
        served.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    )?;
    Ok(())
}

/// The third misses writes; meanwhile the first, which keeps hints for it, becomes the other
/// system: how many reads find that the third still lacks something.
fn left_hints(members: &mut [Member], layout: &Layout) -> Outcome<u64> {
    let mut differ = 0;
    for to_ours in [true, false] {
        let [first, second, third] = members else { return Err("not three nodes".into()) };
        third.end(End::Drained)?;
        Clients::again(&[first, second], "run", HINTS_GATHER)?;
        first.end(End::Drained)?;
        first.is_ours = to_ours;
        first.start_in_place(layout)?;
        third.start_in_place(layout)?;
        all_up(members)?;
        members::until_no_hints(members, members::HINTS_LIMIT)?;
        let before = members::mismatches(members)?;
        Clients::again(&members.iter().collect::<Vec<_>>(), "compare", 0)?;
        differ += members::mismatches(members)? - before;
    }
    Ok(differ)
}

fn all_up(members: &[Member]) -> Outcome {
    let up =
        |member: &Member| ring::until_up(&member.ip, members.len(), || member.nodetool("status"));
    members.iter().try_for_each(up)
}
