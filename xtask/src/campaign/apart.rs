//! `cargo xtask campaign apart`: two data centres that do not reach each other for a while, and are
//! written to in both at LOCAL_QUORUM. Recorded under `docs/campaigns/`.

use std::time::{Duration, Instant};

use crate::clients::Clients;
use crate::load;
use crate::machine::Outcome;
use crate::members::{self, Layout, Member};
use crate::network::{self, Networks};
use crate::ring;

/// Three in each data centre, dealt in turn.
const NODES: u8 = 6;
/// Where the clients of the second data centre are.
const CLIENTS: u8 = NODES + 1;
/// How long the partition lasts, in seconds, where no number is given.
const LASTS: u64 = 600;
/// Seconds before it.
const BEFORE: u64 = 60;
/// Options of the clients of each data centre.
const LOAD: [&str; 6] = ["--writes", "0.8", "--rate", "300", "--rows", "3000"];
/// How much higher the 99th percentile of reads may be while hints are delivered.
const RATIO: f64 = 2.0;

/// `hinted_handoff_throttle` of Cassandra, in bytes a second, which the other nodes of the ring
/// share.
const THEIR_THROTTLE: u64 = 1 << 20;
/// `max_hints_delivery_threads` of Cassandra.
const THEIR_DELIVERIES: u64 = 2;

/// Bytes of the files with hints of a node.
fn hint_bytes(member: &Member) -> Outcome<u64> {
    let files = std::fs::read_dir(member.dir.join("data/hints"))?;
    // a file may be delivered and gone meanwhile
    Ok(files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum())
}

/// `campaign apart [SECONDS]`
pub fn campaign(words: &[&str]) -> Outcome {
    let lasts = match words {
        [] => LASTS,
        [seconds] => seconds.parse().map_err(|_| format!("{seconds} is no number"))?,
        _ => return Err(super::USAGE.into()),
    };
    let layout = Layout { ours: NODES, centers: 2, has_networks: true, ..Layout::default() };
    load::build()?;
    let networks = Networks::make(CLIENTS)?;
    let members = members::start(&layout)?;
    for member in &members {
        ring::until_up(&member.ip, members.len(), || member.nodetool("status"))?;
    }
    let (near, far): (Vec<&Member>, Vec<&Member>) =
        members.iter().partition(|member| member.center == "datacenter1");
    let there: Vec<u8> = (1..=NODES).filter(|n| n % 2 == 0).chain([CLIENTS]).collect();
    let through: Vec<&str> = members.iter().map(|member| member.ip.as_str()).collect();
    let options = [&LOAD[..], &["--through"], &through].concat();
    let mut here = Clients::start_in(None, "near", &near, &options)?;
    let mut away = Clients::start_in(Some(&network::name(CLIENTS)), "far", &far, &options)?;

    std::thread::sleep(Duration::from_secs(BEFORE));
    let before = (here.window()?, away.window()?);
    networks.cut(&there)?;
    println!("apart");
    std::thread::sleep(Duration::from_secs(lasts));
    let during = (here.window()?, away.window()?);
    let kept = members.iter().map(hint_bytes).collect::<Outcome<Vec<u64>>>()?;
    networks.heal(&there)?;
    println!("together");
    let healed = Instant::now();
    for member in &members {
        ring::until_up(&member.ip, members.len(), || member.nodetool("status"))?;
    }
    let up = healed.elapsed();
    members::until_no_hints(&members, members::HINTS_LIMIT.max(Duration::from_secs(lasts)))?;
    let delivered = healed.elapsed();
    let after = (here.window()?, away.window()?);
    here.rest()?;
    away.rest()?;
    let differing = members::mismatches(&members)?;
    let (is_right_here, said_here) = here.end()?;
    let (is_right_there, said_there) = away.end()?;
    let differing = members::mismatches(&members)? - differing;

    let windows = [&before, &during, &after];
    let failed: u64 = windows.iter().map(|(here, there)| here.failed + there.failed).sum();
    let is_flat = after.0.reads_p99 <= RATIO * before.0.reads_p99
        && after.1.reads_p99 <= RATIO * before.1.reads_p99;
    let is_good = is_right_here
        && is_right_there
        && failed == 0
        && differing == 0
        && is_flat
        && delivered.as_secs() < lasts;
    let mut text = format!(
        "Commit {}; two data centres of three nodes and RF 3 each. Again: `cargo xtask campaign apart {}`. Found: {}.\n\n\
         Apart for {lasts} s; {failed} requests failed. All saw each other {:.0} s after it ended, and all hints were delivered after {:.0} s. \
         Then {differing} reads of all rows at ALL through each node found replicas that differ.\n\n\
         The nodes kept {} to {} bytes of hints. A Cassandra with as many would need at least {} s for them at its defaults: 1,024 KiB/s are shared by \
         the other nodes, of which two are sent to at once.\n\n\
         | p99 of reads, ms | before | apart | while hints are delivered |\n|---|---|---|---|\n",
        super::commit()?,
        words.join(" "),
        if is_good { "nothing wrong" } else { "not all is as it should be" },
        up.as_secs_f64(),
        delivered.as_secs_f64(),
        kept.iter().min().unwrap_or(&0),
        kept.iter().max().unwrap_or(&0),
        kept.iter().max().unwrap_or(&0)
            / (THEIR_THROTTLE / u64::from(NODES - 1) * THEIR_DELIVERIES),
    );
    for (name, p99) in [
        ("first data centre", windows.map(|window| window.0.reads_p99)),
        ("second data centre", windows.map(|window| window.1.reads_p99)),
    ] {
        let [before, during, after] = p99;
        text.push_str(&format!("| {name} | {before} | {during} | {after} |\n"));
    }
    text.push_str(&format!("\nThe clients: `{said_here}`, `{said_there}`\n"));
    println!("recorded in {}", super::record(&super::named("apart", words), &text)?.display());
    members::stop()?;
    if is_good { Ok(()) } else { Err("not all is as it should be".into()) }
}
