//! `cargo xtask campaign faults`: one of three nodes is killed, stopped, cut off, or has a slow
//! disk, while clients read and write at QUORUM. Recorded under `docs/campaigns/`.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::clients::{Clients, Window};
use crate::load;
use crate::machine::{self, Outcome};
use crate::members::{self, End, Layout, Member};
use crate::network::Networks;
use crate::ring;

const NODES: u8 = 3;
/// Whom it hits; not the first, which the others ask for news.
const VICTIM: u8 = 3;
/// Seconds before a fault of which the latency is compared with that after it.
const BEFORE: u64 = 60;
/// How long a fault lasts, in seconds, where no number is given.
const LASTS: u64 = 30;
/// Seconds after the end of a fault that latency has to be as before, and for how many it is
/// measured then.
const SETTLE: u64 = 10;
const AFTER: u64 = 30;
/// How much higher the 99th percentile may be then.
const RATIO: f64 = 1.5;
/// Reads and writes a second of a slow disk.
const SLOW_OPERATIONS: u32 = 25;

#[derive(Clone, Copy, Debug)]
enum Fault {
    Killed,
    Stopped,
    CutOff,
    SlowDisk,
}

const FAULTS: [Fault; 4] = [Fault::Killed, Fault::Stopped, Fault::CutOff, Fault::SlowDisk];

/// `campaign faults [SECONDS [FAULT]]`
pub fn campaign(words: &[&str]) -> Outcome {
    let (lasts, only) = match words {
        [] => (LASTS, None),
        [seconds, only @ ..] if only.len() < 2 => {
            (seconds.parse().map_err(|_| format!("{seconds} is no number"))?, only.first())
        }
        _ => return Err(super::USAGE.into()),
    };
    let mut faults = FAULTS.to_vec();
    faults.retain(|fault| only.is_none_or(|only| *only == format!("{fault:?}")));
    if faults.is_empty() {
        return Err(format!("the faults are {FAULTS:?}").into());
    }
    let layout = Layout { ours: NODES, has_networks: true, ..Layout::default() };
    load::build()?;
    let networks = Networks::make(NODES)?;
    let members = members::start_with(&layout, "")?;
    let victim = members.last().ok_or("a ring of nobody")?;
    all_up(&members)?;
    let mut clients = Clients::start(&members, &["--level", "QUORUM", "--rate", "400"])?;
    let mut text = String::from(
        "| fault | failed | p99 of the minute before, ms | worst while it lasts, ms | p99 from 10 s after its end on, ms | up again after | hints there after |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let mut is_good = true;
    for fault in faults {
        println!("{fault:?}");
        let before = window(&mut clients, BEFORE)?;
        begin(fault, victim, &networks)?;
        let during = window(&mut clients, lasts)?;
        end(fault, victim, &networks, &layout)?;
        let ended = Instant::now();
        let settling = window(&mut clients, SETTLE)?;
        let after = window(&mut clients, AFTER)?;
        all_up(&members)?;
        let up_after = ended.elapsed();
        members::until_no_hints(&members, members::HINTS_LIMIT)?;
        let hints_after = ended.elapsed();
        let failed = [&before, &during, &settling, &after].map(|of| of.failed).iter().sum::<u64>();
        is_good &= failed == 0 && after.p99 <= RATIO * before.p99;
        writeln!(
            text,
            "| {fault:?} | {failed} | {} | {} | {} ({:.2} times) | at most {:.0} s | {:.0} s |",
            before.p99,
            during.worst,
            after.p99,
            after.p99 / before.p99,
            up_after.as_secs_f64(),
            hints_after.as_secs_f64(),
        )?;
    }
    clients.rest()?;
    let before = members::mismatches(&members)?;
    let (is_right, said) = clients.end()?;
    let differed = members::mismatches(&members)? - before;
    is_good &= is_right && differed == 0;
    let text = format!(
        "Commit {}; {NODES} nodes in network namespaces of their own, RF 3, {lasts} s each fault. Again: `cargo xtask campaign faults {}`. Found: {}.\n\n{text}\n\
         All rows read at ALL through each node at the end: {differed} reads found replicas that differ.\n\nThe clients: `{said}`\n",
        super::commit()?,
        words.join(" "),
        if is_good { "nothing wrong" } else { "not all is as it should be" },
    );
    println!("recorded in {}", super::record("faults", &text)?.display());
    members::stop()?;
    if is_good { Ok(()) } else { Err(said.into()) }
}

fn window(clients: &mut Clients, seconds: u64) -> Outcome<Window> {
    std::thread::sleep(Duration::from_secs(seconds));
    clients.window()
}

fn begin(fault: Fault, victim: &Member, networks: &Networks) -> Outcome {
    match fault {
        Fault::Killed => victim.end(End::Killed),
        Fault::Stopped => signal(victim, "-STOP"),
        Fault::CutOff => networks.cut(&[VICTIM]),
        Fault::SlowDisk => slow(victim, SLOW_OPERATIONS),
    }
}

fn end(fault: Fault, victim: &Member, networks: &Networks, layout: &Layout) -> Outcome {
    match fault {
        Fault::Killed => victim.start_in_place(layout),
        Fault::Stopped => signal(victim, "-CONT"),
        Fault::CutOff => networks.heal(&[VICTIM]),
        Fault::SlowDisk => slow(victim, 0),
    }
}

fn signal(victim: &Member, signal: &str) -> Outcome {
    machine::run(Command::new("kill").args([signal, &victim.pid()?]))
}

/// Bounds the operations a second that a node's disk does for it; 0 is no bound.
fn slow(victim: &Member, operations: u32) -> Outcome {
    let group = PathBuf::from("/sys/fs/cgroup/blkio/helenus-slow");
    fs::create_dir_all(&group)?;
    let device = fs::metadata(&victim.dir)?.dev();
    let bound = format!("{}:{} {operations}", device >> 8 & 0xfff, device & 0xff);
    for direction in ["read", "write"] {
        fs::write(group.join(format!("blkio.throttle.{direction}_iops_device")), &bound)?;
    }
    Ok(fs::write(group.join("cgroup.procs"), victim.pid()?)?)
}

fn all_up(members: &[Member]) -> Outcome {
    let up =
        |member: &Member| ring::until_up(&member.ip, members.len(), || member.nodetool("status"));
    members.iter().try_for_each(up)
}
