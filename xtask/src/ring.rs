//! Rings: of a real Cassandra and a Helenus, the corpus through both; of three Helenus. All
//! replicas are asked.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::oracle;
use crate::peer::{ORACLE_HEAP, Peer};

/// Statements whose answer two replicas change, or that a Helenus replica refuses.
pub const KNOWN: &str = "docs/differences-ring.md";
/// Files of the corpus, each read of which compares both replicas.
pub const FILES: &[&str] = &[
    "alter",
    "batch",
    "bind",
    "collections",
    "compact_composite",
    "compact_conditions",
    "compact_dense",
    "compact_static",
    "counters",
    "dml",
    "expressions",
    "filtering_replicas",
    "functions",
    "gen_merge",
    "gen_paging",
    "indexed",
    "indexes",
    "json",
    "lwt",
    "lwt_batch",
    "lwt_conditions",
    "select",
    "selections",
    "tables",
    "ttl",
    "udt",
];
/// Those of them that a stage has no time for: `campaign ring` has them, and most are asked through
/// a Helenus too.
const LONG_FILES: &[&str] = &[
    "compact_conditions",
    "compact_dense",
    "expressions",
    "functions",
    "gen_paging",
    "json",
    "lwt_batch",
    "selections",
];
/// Files through a Helenus: what is asked of data rather than of the schema, which waits for all
/// nodes.
const DATA_FILES: &[&str] = &[
    "batch",
    "collections",
    "compact_composite",
    "compact_conditions",
    "compact_dense",
    "compact_static",
    "counters",
    "dml",
    "gen_merge",
    "gen_paging",
    "json",
    "lwt",
    "lwt_batch",
    "lwt_conditions",
    "select",
    "ttl",
    "udt",
];
/// Files whose replicas never differ, and in which a Helenus that coordinates finds none that do.
const EQUAL_FILES: &[&str] = &["filtering_replicas", "paging_edges"];
/// Files of which reads of Cassandra's own replicas differ too: pages of groups.
const UNSURE_FILES: &[&str] = &["aggregates", "paging_edges"];
/// The name that `conformance/peer` gives its clusters.
const CLUSTER: &str = "peer";
/// Nodes of the ring with a Cassandra; each has all.
const MIXED: usize = 2;
/// Nodes of the ring without; each has all.
const OWN: usize = 3;

/// How long a node may take to hear of another.
const NEWS_LIMIT: Duration = Duration::from_secs(60);

/// Between two looks.
const NEWS_PAUSE: Duration = Duration::from_millis(500);

/// What came of it.
#[derive(Default)]
pub struct Found {
    /// The last lines of the corpus's runs.
    pub corpora: Vec<String>,
    /// Things that hold.
    pub held: usize,
    /// Things that do not.
    pub problems: Vec<String>,
}

impl Found {
    fn check(&mut self, what: String, holds: bool) {
        match holds {
            true => self.held += 1,
            false => self.problems.push(what),
        }
    }
}

/// Runs it on these addresses: the last one is Cassandra's.
pub fn run(ours: [&str; OWN], theirs: &str) -> Outcome<Found> {
    machine::need(&["python3"])?;
    node::build()?;
    node::build_nodetool()?;
    let mut found = Found::default();
    with_cassandra(&mut found, ours[0], theirs)?;
    alone(&mut found, ours)?;
    encrypted(&mut found, ours[0], theirs)?;
    Ok(found)
}

fn with_cassandra(found: &mut Found, ours: &str, theirs: &str) -> Outcome {
    let cassandra = Peer::start("ring-cassandra", theirs, ORACLE_HEAP)?;
    let helenus = Node::start_member("ring-helenus", ours, CLUSTER, theirs)?;
    until_up("Cassandra", MIXED, || cassandra.nodetool("status"))?;
    let has_time: Vec<_> =
        FILES.iter().copied().filter(|file| !LONG_FILES.contains(file)).collect();
    corpus(found, theirs, MIXED, &has_time)?;
    let differing = mismatches(&cassandra.nodetool("netstats")?);
    let text = format!("{differing:?} reads found replicas that differ");
    found.check(text, differing == Some(0));
    corpus(found, theirs, MIXED, UNSURE_FILES)?;
    corpus(found, ours, MIXED, EQUAL_FILES)?;
    let differing = mismatches(&own_nodetool("ring-helenus", "netstats")?);
    let text = format!("{differing:?} reads through the Helenus found replicas that differ");
    found.check(text, differing == Some(0));
    corpus(found, ours, MIXED, DATA_FILES)?;
    corpus(found, ours, MIXED, UNSURE_FILES)?;
    traces(found, &[ours, theirs])?;
    type Said<'a> = &'a dyn Fn(&str) -> Outcome<String>;
    let both: [(&str, Said<'_>); 2] = [
        ("Cassandra", &|verb| cassandra.nodetool(verb)),
        ("Helenus", &|verb| own_nodetool("ring-helenus", verb)),
    ];
    for (whose, said) in both {
        let (status, cluster) = (|| said("status"), || said("describecluster"));
        let up = up_and_normal(&status()?);
        found.check(format!("{whose} sees {up} nodes up and normal"), up == MIXED);
        found.check(format!("{whose} sees several schemas"), sees_one_schema(cluster)?);
    }
    drop(helenus);
    Ok(())
}

fn alone(found: &mut Found, addresses: [&str; OWN]) -> Outcome {
    let mut nodes = Vec::new();
    for (number, ip) in addresses.into_iter().enumerate() {
        let name = format!("ring-own-{number}");
        nodes.push(Node::start_member(&name, ip, CLUSTER, addresses[0])?);
    }
    for number in 0..OWN {
        let name = format!("ring-own-{number}");
        until_up(&name, OWN, || own_nodetool(&name, "status"))?;
    }
    corpus(found, addresses[1], OWN, DATA_FILES)?;
    corpus(found, addresses[2], OWN, UNSURE_FILES)?;
    let one_schema = sees_one_schema(|| own_nodetool("ring-own-0", "describecluster"))?;
    found.check("three Helenus have several schemas".to_owned(), one_schema);
    drop(nodes);
    Ok(())
}

/// Traced requests through each node: a session has the events of all replicas.
fn traces(found: &mut Found, hosts: &[&str]) -> Outcome {
    let mut command = Command::new("python3");
    command.arg(machine::root().join("conformance/peers/traces.py")).args(hosts);
    let (done, text) = machine::output(&mut command)?;
    found.held += text.lines().filter(|line| line.starts_with("ok ")).count();
    found.problems.extend(text.lines().filter(|l| l.starts_with("failed ")).map(str::to_owned));
    found.check("the traced requests did not run to their end".to_owned(), done);
    Ok(())
}

/// Nodes that encrypt what they say, one of them a Cassandra, and those that they refuse.
fn encrypted(found: &mut Found, ours: &str, theirs: &str) -> Outcome {
    machine::need(&["openssl", "keytool"])?;
    let mut command = Command::new("python3");
    command.arg(machine::root().join("conformance/peers/tls.py"));
    command.arg(node::command().get_program()).arg(node::nodetool_path());
    command.arg(machine::cache().join("run/ring-tls")).args([ours, theirs, "--cassandra"]);
    let (done, text) =
        machine::output(command.arg(machine::root().join("conformance/peer/cassandra")))?;
    found.held += text.lines().filter(|line| line.starts_with("ok ")).count();
    found.problems.extend(text.lines().filter(|l| l.starts_with("failed ")).map(str::to_owned));
    found.check("the tries at nodes that encrypt did not run to their end".to_owned(), done);
    Ok(())
}

/// What the operator's client prints of a node.
fn own_nodetool(name: &str, verb: &str) -> Outcome<String> {
    let data = machine::cache().join("run").join(name).join("data");
    Ok(machine::output(node::nodetool(&data).arg(verb))?.1)
}

/// Waits until a node sees so many up: gossip takes its time.
pub fn until_up(who: &str, nodes: usize, status: impl Fn() -> Outcome<String>) -> Outcome {
    let until = Instant::now() + NEWS_LIMIT;
    while up_and_normal(&status()?) < nodes {
        if Instant::now() > until {
            return Err(format!("{who} does not see {nodes} nodes within {NEWS_LIMIT:?}").into());
        }
        std::thread::sleep(NEWS_PAUSE);
    }
    Ok(())
}

/// How many nodes `nodetool status` shows as up and normal.
pub fn up_and_normal(status: &str) -> usize {
    status.lines().filter(|line| line.starts_with("UN ")).count()
}

/// Runs files, and keeps the line that says what came of it.
fn corpus(found: &mut Found, host: &str, replicas: usize, files: &[&str]) -> Outcome {
    let mut command = oracle::command();
    command.args(["--golden", host, "--replicas", &replicas.to_string(), "--known"]);
    command.arg(machine::root().join(KNOWN)).args(files);
    let (_, text) = machine::output(&mut command)?;
    let last = text.lines().rev().find(|line| line.contains(" statements compared"));
    found.corpora.push(last.unwrap_or_default().to_owned());
    found.problems.extend(oracle::different(&text));
    Ok(())
}

/// `Mismatch (Blocking): N` of `nodetool netstats`.
pub fn mismatches(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Mismatch (Blocking): "))?;
    line.trim().parse().ok()
}

/// Does a node see one schema? It hears by gossip that the others have the last change, too.
pub fn sees_one_schema(cluster: impl Fn() -> Outcome<String>) -> Outcome<bool> {
    let until = Instant::now() + NEWS_LIMIT;
    while schema_versions(&cluster()?) != 1 {
        if Instant::now() > until {
            return Ok(false);
        }
        std::thread::sleep(NEWS_PAUSE);
    }
    Ok(true)
}

/// How many versions `nodetool describecluster` lists.
fn schema_versions(text: &str) -> usize {
    let lines = text.lines().skip_while(|line| !line.contains("Schema versions:")).skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("\t\t"));
    lines.filter(|line| line.contains(": [")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_nodetool_prints() {
        let text = "Attempted: 3\nMismatch (Blocking): 17\nMismatch (Background): 0\n";
        assert_eq!(mismatches(text), Some(17));
        assert_eq!(mismatches("nothing"), None);
        let text =
            "\tSchema versions:\n\t\tab: [127.0.0.1]\n\n\t\tUNREACHABLE: [127.0.0.2]\n\nStats:\n";
        assert_eq!(schema_versions(text), 2);
    }
}
