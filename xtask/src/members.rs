//! `cargo xtask ring`: a ring on 127.0.0.x that stays until it is told to stop.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{self, Outcome};
use crate::{network, node, peer, ring};

/// Tokens of a node, unless a ring has others.
const TOKENS: u16 = 16;
/// The name that `conformance/peer` gives its clusters.
pub const CLUSTER: &str = "peer";
/// The first node has 127.0.0.1, and so on.
const MEMBERS_MAX: u8 = 16;
/// Names the number that is added to the last one of each address, so that rings beside each other
/// have addresses of their own: 0.
const BASE: &str = "HELENUS_RING_BASE";
/// The greatest of them: a Cassandra that is alone has one behind its ring.
const BASE_MAX: u8 = 200;
/// How long a node may take until it serves.
const START_LIMIT: Duration = Duration::from_secs(90);
/// What a node says that serves clients.
const SERVES: &str = "Starting listening for CQL clients";
/// The releases of Cassandra that share a ring with Helenus; the first is what is started where
/// none is named.
const RELEASES: [&str; 2] = ["5.0.9", "4.1.10"];

/// How long hints may take to be delivered.
pub const HINTS_LIMIT: Duration = Duration::from_secs(180);
/// What `nodetool listpendinghints` says where there are none.
const NO_HINTS: &str = "This node does not have any pending hints";

/// An address that is not loopback is not served without passwords, unless so.
const OPEN: [&str; 2] = ["--set", "open_without_authentication=true"];

const USAGE: &str = "ring N [--cassandra M] [--release 5.0|4.1] [--dc K] | ring stop
  HELENUS_RING_BASE=100 gives the nodes 127.0.0.101, .102, ...: a ring beside another one";

/// What a ring is made of.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Nodes of Helenus.
    pub ours: u8,
    /// Nodes of Cassandra, which come first.
    pub theirs: u8,
    /// The release that all say they are of.
    pub release: &'static str,
    /// Data centres, over which the nodes are dealt: `datacenter1`, `datacenter2`, ...
    pub centers: u8,
    /// Has each node a network of its own, which can be cut off?
    pub has_networks: bool,
    /// Shards of a Helenus: one a core, unless so many.
    pub shards: Option<u8>,
    /// Its `memory_budget`, where it is not what a node has by itself; then the node takes it all
    /// at its start, as a JVM does with its heap (`AlwaysPreTouch`).
    pub memory: Option<String>,
    /// Tokens of each node.
    pub tokens: u16,
    /// Lines of `cassandra.yaml` that all have beside the usual ones.
    pub settings: String,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            ours: 0,
            theirs: 0,
            release: RELEASES[0],
            centers: 1,
            has_networks: false,
            shards: None,
            memory: None,
            tokens: TOKENS,
            settings: String::new(),
        }
    }
}

impl Layout {
    fn parse(words: &[&str]) -> Outcome<Self> {
        let number =
            |text: &str| text.parse::<u8>().map_err(|_| format!("{USAGE}: {text} is no number"));
        let [ours, options @ ..] = words else { return Err(USAGE.into()) };
        let mut layout = Self { ours: number(ours)?, ..Self::default() };
        for option in options.chunks(2) {
            match *option {
                ["--cassandra", theirs] => layout.theirs = number(theirs)?,
                ["--release", release] => layout.release = known_release(release)?,
                ["--dc", centers] => layout.centers = number(centers)?.max(1),
                _ => return Err(USAGE.into()),
            }
        }
        let all = layout.ours.checked_add(layout.theirs);
        match all.is_some_and(|all| (1..=MEMBERS_MAX).contains(&all)) {
            true => Ok(layout),
            false => Err(format!("a ring has 1 to {MEMBERS_MAX} nodes here").into()),
        }
    }

    /// The data centre of a node.
    fn center(&self, number: u8) -> String {
        format!("datacenter{}", (number - 1) % self.centers + 1)
    }

    /// Whom all ask first.
    fn seed(&self) -> String {
        self.members().first().map(|first| first.ip.clone()).unwrap_or_default()
    }

    /// All nodes, Cassandra's first.
    pub fn members(&self) -> Vec<Member> {
        (1..=self.ours + self.theirs).map(|number| self.member(number)).collect()
    }

    /// The node of that number; one that is none of the ring's yet is of the kind of its last.
    pub fn member(&self, number: u8) -> Member {
        Member {
            ip: match self.has_networks {
                true => network::address(number),
                false => loopback(number),
            },
            network: self.has_networks.then(|| network::name(number)),
            dir: home().join(number.to_string()),
            is_ours: number.min(self.ours + self.theirs) > self.theirs,
            center: self.center(number),
        }
    }
}

/// The release that a text like `4.1` means.
pub fn known_release(text: &str) -> Outcome<&'static str> {
    let found = RELEASES.iter().find(|release| release.starts_with(text));
    Ok(found.ok_or_else(|| format!("{text} is none of {}", RELEASES.join(", ")))?)
}

/// A node of the ring.
pub struct Member {
    /// Its address; the port is 9042.
    pub ip: String,
    /// Where its data and logs are.
    pub dir: PathBuf,
    /// Is it a Helenus?
    pub is_ours: bool,
    /// Its data centre.
    pub center: String,
    /// Its network namespace, if it has one of its own.
    pub network: Option<String>,
}

impl Member {
    /// Its process.
    pub fn pid(&self) -> Outcome<String> {
        Ok(fs::read_to_string(self.dir.join(self.pid_file()))?.trim().to_owned())
    }

    fn pid_file(&self) -> &'static str {
        if self.is_ours { "helenus.pid" } else { "pid" }
    }

    /// The operator's client for it.
    pub fn tool(&self) -> Command {
        if self.is_ours {
            return node::nodetool(&self.dir.join("data"));
        }
        let mut script = network::within(self.network.as_deref(), peer::script());
        script.arg("nodetool").arg(&self.dir);
        script
    }

    /// What an operator's client prints of it.
    pub fn nodetool(&self, verb: &str) -> Outcome<String> {
        match machine::output(self.tool().arg(verb))? {
            (true, text) => Ok(text),
            (false, text) => Err(format!("nodetool {verb} of {} failed: {text}", self.ip).into()),
        }
    }
}

/// `ring N [...]` starts N nodes of Helenus, and real ones before them; `ring stop` stops them all.
pub fn run(args: &[String]) -> Outcome {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if words == ["stop"] {
        return stop();
    }
    let layout = Layout::parse(&words)?;
    let members = start(&layout)?;
    for member in &members {
        let kind = if member.is_ours { "Helenus" } else { "Cassandra" };
        println!("{}  {kind}  {}  {}", member.ip, member.center, member.dir.display());
    }
    if let Some(last) = members.last() {
        println!("a shell: pipx run cqlsh {} 9042", last.ip);
        if last.is_ours {
            let (nodetool, data) = (node::nodetool_path(), last.dir.join("data"));
            println!("its view: {} --data-dir {} status", nodetool.display(), data.display());
        }
    }
    println!("to stop it: cargo xtask ring stop");
    Ok(())
}

/// Starts a ring in place of the one that is there.
pub fn start(layout: &Layout) -> Outcome<Vec<Member>> {
    start_with(layout, peer::ORACLE_HEAP)
}

/// The same, with a heap for each Cassandra.
pub fn start_with(layout: &Layout, heap: &str) -> Outcome<Vec<Member>> {
    stop()?;
    node::build()?;
    node::build_nodetool()?;
    let (members, seed) = (layout.members(), layout.seed());
    for member in &members {
        match member.is_ours {
            false => start_cassandra(member, &seed, layout, heap)?,
            true => start_helenus(member, &seed, layout, ["auto_bootstrap: false\n", ""])?,
        }
    }
    Ok(members)
}

/// Starts a node that fetches its part of the data from those that are there, and waits until it
/// serves, so long at the most.
pub fn join(layout: &Layout, member: &Member, heap: &str, most: Duration) -> Outcome {
    match member.is_ours {
        false => {
            let mut start = start_of_cassandra(member, &layout.seed(), layout, heap);
            machine::run(start.env("WAIT", most.as_secs().to_string()))
        }
        true => {
            configure(member, &layout.seed(), layout, ["", "ring_delay: 1s\n"])?;
            launch_within(member, layout.release, most)
        }
    }
}

/// Where the rings of this base are.
pub fn home() -> PathBuf {
    machine::cache().join("run").join(named("ring"))
}

/// What rings of other bases call otherwise.
pub fn named(name: &str) -> String {
    match base() {
        0 => name.to_owned(),
        base => format!("{name}-{base}"),
    }
}

fn base() -> u8 {
    let number = std::env::var(BASE).ok().and_then(|text| text.parse::<u8>().ok());
    number.map_or(0, |number| number.min(BASE_MAX))
}

/// The address on this machine of that number.
pub fn loopback(number: u8) -> String {
    format!("127.0.0.{}", base() + number)
}

fn start_cassandra(member: &Member, seed: &str, layout: &Layout, heap: &str) -> Outcome {
    machine::need(&["bash", "java", "mvn", "python3"])?;
    machine::run(&mut start_of_cassandra(member, seed, layout, heap))
}

fn start_of_cassandra(member: &Member, seed: &str, layout: &Layout, heap: &str) -> Command {
    let mut start = network::within(member.network.as_deref(), peer::script());
    start.arg("start").arg(&member.dir).args([&member.ip, heap]);
    start.env("FAST", "1").env("SEEDS", seed).env("NUM_TOKENS", layout.tokens.to_string());
    start.env("CASSANDRA_VERSION", layout.release).env("DC", &member.center);
    if !layout.settings.is_empty() {
        start.env("EXTRA_YAML", &layout.settings);
    }
    start
}

fn start_helenus(member: &Member, seed: &str, layout: &Layout, more: [&str; 2]) -> Outcome {
    configure(member, seed, layout, more)?;
    launch(member, layout.release)
}

/// Writes the configuration of a Helenus into its directory, with more lines of `cassandra.yaml`
/// and of `helenus.yaml`.
fn configure(member: &Member, seed: &str, layout: &Layout, [more, own]: [&str; 2]) -> Outcome {
    let conf = member.dir.join("conf");
    fs::create_dir_all(&conf)?;
    let yaml = conf.join("cassandra.yaml");
    let shards = layout.shards.map(|shards| format!("shards: {shards}\n")).unwrap_or_default();
    let memory = layout.memory.as_ref();
    let memory = memory.map(|bytes| format!("memory_budget: {bytes}\nmemory_pretouch: true\n"));
    let memory = memory.unwrap_or_default();
    fs::write(conf.join("helenus.yaml"), format!("{shards}{memory}{own}"))?;
    let settings = format!(
        "cluster_name: {CLUSTER}\nnum_tokens: {}\n{more}{}\n\
         endpoint_snitch: GossipingPropertyFileSnitch\n\
         seed_provider: [ {{ class_name: SimpleSeedProvider, parameters: [ {{ seeds: \"{seed}\" }} ] }} ]\n",
        layout.tokens, layout.settings
    );
    fs::write(&yaml, settings)?;
    let place = format!("dc={}\nrack=rack1\n", member.center);
    Ok(fs::write(conf.join("cassandra-rackdc.properties"), place)?)
}

/// Starts a Helenus with the configuration that is in its directory.
pub fn launch(member: &Member, release: &str) -> Outcome {
    launch_within(member, release, START_LIMIT)
}

fn launch_within(member: &Member, release: &str, most: Duration) -> Outcome {
    begin(member, release)?;
    until_serves(member, most)
}

/// Begins a Helenus with the configuration that is in its directory, and does not wait for it.
pub fn begin(member: &Member, release: &str) -> Outcome {
    let (dir, ip) = (&member.dir, &member.ip);
    let (out, log) = (dir.join("stdout.log"), dir.join("stderr.log"));
    let child = network::within(member.network.as_deref(), node::command())
        .arg("--config")
        .arg(dir.join("conf/cassandra.yaml"))
        .arg("--data-dir")
        .arg(dir.join("data"))
        .args(["--listen", ip, "--set", &format!("metrics_address={ip}")])
        .args(["--set", &format!("release_version={release}")])
        .args(member.network.iter().flat_map(|_| OPEN))
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&log)?)
        // it outlives this command, and the terminal's interrupts
        .process_group(0)
        .spawn()?;
    Ok(fs::write(dir.join("helenus.pid"), child.id().to_string())?)
}

/// Does a Helenus serve clients since it began?
pub fn serves(member: &Member) -> Outcome<bool> {
    Ok(fs::read_to_string(member.dir.join("stdout.log"))?.contains(SERVES))
}

/// Waits until it does, so long at the most.
pub fn until_serves(member: &Member, most: Duration) -> Outcome {
    let until = Instant::now() + most;
    while !serves(member)? {
        if Instant::now() > until {
            let log = member.dir.join("stderr.log");
            return Err(format!("{} does not serve; see {}", member.ip, log.display()).into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// How a node goes.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// `nodetool drain`, then SIGTERM.
    Drained,
    /// SIGKILL.
    Killed,
}

impl Member {
    /// Ends it; its directory stays.
    pub fn end(&self, how: End) -> Outcome {
        let pid = self.pid()?;
        let signal = match how {
            End::Drained => {
                self.nodetool("drain")?;
                "-15"
            }
            End::Killed => "-9",
        };
        machine::run(Command::new("kill").args([signal, &pid]))?;
        while is_running(&pid) {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(fs::remove_file(self.dir.join(self.pid_file()))?)
    }

    /// Does its process do anything yet?
    pub fn is_running(&self) -> bool {
        self.pid().is_ok_and(|pid| is_running(&pid))
    }

    /// Starts what it is now on its directory, which may be what the other system left, and waits
    /// until it serves.
    pub fn start_in_place(&self, layout: &Layout) -> Outcome {
        match self.is_ours {
            true => launch(self, layout.release),
            false => start_cassandra(self, &layout.seed(), layout, peer::ORACLE_HEAP),
        }
    }
}

/// Is a Cassandra sending hints? The file that it has begun is none that waits.
fn delivers(tpstats: &str) -> bool {
    let pool = tpstats.lines().find(|line| line.starts_with("HintsDispatcher "));
    let counts = pool.map(|line| line.split_whitespace().skip(1).take(2));
    counts.is_some_and(|mut counts| counts.any(|count| count.parse().is_ok_and(|n: u64| n > 0)))
}

/// Waits until no node has hints for another, so long at the most.
pub fn until_no_hints(members: &[Member], most: Duration) -> Outcome {
    let until = Instant::now() + most;
    for member in members {
        while !member.nodetool("listpendinghints")?.contains(NO_HINTS)
            || delivers(&member.nodetool("tpstats")?)
        {
            if Instant::now() > until {
                return Err(format!("{} has hints after {most:?}", member.ip).into());
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    Ok(())
}

/// Reads that found replicas which differ, of all nodes since they started.
pub fn mismatches(members: &[Member]) -> Outcome<u64> {
    let of = |member: &Member| -> Outcome<u64> {
        let text = member.nodetool("netstats")?;
        Ok(ring::mismatches(&text).ok_or_else(|| format!("no mismatches in {text}"))?)
    };
    members.iter().map(of).sum()
}

/// Stops what was started, and forgets its data.
pub fn stop() -> Outcome {
    let Ok(members) = fs::read_dir(home()) else { return Ok(()) };
    for member in members.filter_map(Result::ok).map(|entry| entry.path()) {
        if let Ok(pid) = fs::read_to_string(member.join("helenus.pid")) {
            // one that has ended is stopped
            let _ = Command::new("kill").arg(pid.trim()).status();
            while is_running(&pid) {
                std::thread::sleep(Duration::from_millis(100));
            }
        } else if member.join("pid").exists() {
            machine::run(peer::script().arg("stop").arg(&member))?;
        }
    }
    Ok(fs::remove_dir_all(home())?)
}

/// Does a process do anything yet? A child of this one that has ended may be there as a zombie; its
/// files are closed once the last of its threads has gone.
fn is_running(pid: &str) -> bool {
    let process = Path::new("/proc").join(pid.trim());
    let stat = fs::read_to_string(process.join("stat"));
    let threads = fs::read_dir(process.join("task")).map_or(0, Iterator::count);
    stat.is_ok_and(|stat| !stat.contains(") Z ")) || threads > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cassandra_that_sends_hints_has_tasks_in_a_pool() {
        let pool = |active, pending| {
            format!(
                "Pool Name                Active Pending Completed\n\
                 HintsDispatcher          {active}      {pending}       12\n"
            )
        };
        assert!(delivers(&pool(1, 0)) && delivers(&pool(0, 2)));
        assert!(!delivers(&pool(0, 0)) && !delivers("Pool Name   Active\n"));
    }
}
