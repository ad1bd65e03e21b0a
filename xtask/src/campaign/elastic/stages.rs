//! What `nodetool status` shows of nodes, while a ring changes and when it is still.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::machine::Outcome;
use crate::members::Member;

use super::scenario::Kind;

/// How long a ring may take until all nodes see it alike.
const STILL_LIMIT: Duration = Duration::from_secs(90);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(300);

/// The state of each address, such as `UN`.
pub type Status = BTreeMap<String, String>;

/// What observers saw of some nodes: the states, by the kind of the observer.
pub type Seen = BTreeMap<&'static str, BTreeSet<String>>;

/// What a node sees now.
pub fn status(member: &Member) -> Outcome<Status> {
    let output = member.tool().arg("status").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(states(&text).map(|(ip, state, _)| (ip, state)).collect()),
        false => Err(format!(
            "nodetool status of {} failed: {text}{}",
            member.ip,
            String::from_utf8_lossy(&output.stderr)
        )
        .into()),
    }
}

/// The host ID of an address, as a node sees it.
pub fn host_id(member: &Member, ip: &str) -> Outcome<String> {
    let output = member.tool().arg("status").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = states(&text).find(|(of, ..)| of == ip).map(|(.., line)| line.to_owned());
    let line = found.ok_or_else(|| format!("{} does not see {ip}", member.ip))?;
    let is_id = |word: &&str| word.len() == 36 && word.matches('-').count() == 4;
    Ok(line.split_whitespace().find(is_id).ok_or("a line without host ID")?.to_owned())
}

/// Address, state and line of each node.
fn states(text: &str) -> impl Iterator<Item = (String, String, &str)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (state, ip) = (words.next()?, words.next()?);
        let is_state = state.len() == 2
            && state.starts_with(['U', 'D', '?'])
            && state.ends_with(['N', 'L', 'J', 'M']);
        is_state.then(|| (ip.to_owned(), state.to_owned(), line))
    })
}

/// The name of what a node is, in lists.
pub fn kind(member: &Member) -> &'static str {
    if member.is_ours { "H" } else { "J" }
}

/// One of each kind.
pub fn observers<'a>(members: impl Iterator<Item = &'a Member>) -> Vec<&'a Member> {
    let by_kind = members.fold(BTreeMap::new(), |mut by_kind, member| {
        by_kind.entry(kind(member)).or_insert(member);
        by_kind
    });
    by_kind.into_values().collect()
}

/// Does something, while observers look at some addresses.
pub fn watch<T>(
    observers: &[&Member],
    addresses: &[String],
    act: impl FnOnce() -> Outcome<T>,
) -> (Outcome<T>, Seen) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = Seen::new();
            while !ends.load(Ordering::Relaxed) {
                for observer in observers {
                    // a node that does not answer now may do so at the next look
                    let status = status(observer).unwrap_or_default();
                    let states = addresses.iter().filter_map(|ip| status.get(ip).cloned());
                    seen.entry(kind(observer)).or_default().extend(states);
                }
                std::thread::sleep(PAUSE);
            }
            seen
        });
        let done = act();
        ends.store(true, Ordering::Relaxed);
        (done, watcher.join().unwrap_or_default())
    })
}

/// Waits until all nodes see this.
pub fn until(members: &[&Member], what: &str, holds: impl Fn(&Status) -> bool) -> Outcome {
    let until = Instant::now() + STILL_LIMIT;
    for member in members {
        loop {
            // Cassandra's fails where a node goes between two of its questions
            let status = status(member);
            if status.as_ref().is_ok_and(&holds) {
                break;
            }
            if Instant::now() > until {
                return Err(format!("{} does not see {what}: {status:?}", member.ip).into());
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// Waits until all nodes see each other up and normal, and nobody else.
pub fn until_still(members: &[&Member]) -> Outcome {
    let of = |member: &&Member| (member.ip.clone(), "UN".to_owned());
    let wanted: Status = members.iter().map(of).collect();
    until(members, &format!("{wanted:?} alone"), |status| *status == wanted)
}

/// The stages that were not seen, by each kind of observer.
pub fn missing(seen: &Seen, observers: &[&Member], wanted: &[&str]) -> Vec<String> {
    let none = BTreeSet::new();
    let mut problems = Vec::new();
    for observer in observers {
        let states = seen.get(kind(observer)).unwrap_or(&none);
        for stage in wanted.iter().filter(|stage| !states.contains(**stage)) {
            let name = if observer.is_ours { Kind::H } else { Kind::J };
            problems.push(format!("nodetool status of a {name} never showed {stage}: {states:?}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_nodetool_prints() {
        let text = "Datacenter: datacenter1\n--  Address     Load  Tokens  Host ID\n\
                    UN  127.0.0.61  1 KiB  4  a\nUJ  127.0.0.64  ?  4  b\n";
        let found: Vec<_> = states(text).map(|(ip, state, _)| (ip, state)).collect();
        let wanted = [("127.0.0.61", "UN"), ("127.0.0.64", "UJ")];
        assert_eq!(found, wanted.map(|(ip, state)| (ip.to_owned(), state.to_owned())));
    }
}
