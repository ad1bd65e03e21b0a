//! What `nodetool netstats` shows of streams, and their limits.

use std::fmt::Write;
use std::net::SocketAddr;

use super::number::{double, file_size};
use crate::model::{StreamFile, StreamLimits, StreamPlan, StreamSession, StreamSum};
use crate::nodetool::{RateUnit, StreamLimit};

const MIB: f64 = (1 << 20) as f64;
/// Bytes of a megabit.
const MEGABIT: f64 = 125_000.0;

/// The plans under way (`NetStats`, `ProgressInfo`).
pub(super) fn plans(plans: &[StreamPlan], human_readable: bool, print_port: bool) -> String {
    if plans.is_empty() {
        return "Not sending any streams.\n".to_owned();
    }
    let mut text = String::new();
    for plan in plans {
        let _ = writeln!(text, "{} {}", plan.operation, plan.id);
        for session in &plan.sessions {
            let peer = address(session.peer, print_port);
            let _ = writeln!(text, "    /{peer}");
            for (is_sent, of) in [(false, session.receiving), (true, session.sending)] {
                if of.files > 0 {
                    sum(&mut text, is_sent, of, human_readable);
                    files(&mut text, session, is_sent, &peer);
                }
            }
            speed(&mut text, session);
        }
    }
    text
}

fn address(of: SocketAddr, print_port: bool) -> String {
    if print_port { of.to_string() } else { of.ip().to_string() }
}

fn sum(text: &mut String, is_sent: bool, of: StreamSum, human_readable: bool) {
    let (verb, done) = if is_sent { ("Sending", "sent") } else { ("Receiving", "received") };
    let size = |bytes: u64| match human_readable {
        true => file_size(bytes),
        false => format!("{bytes} bytes"),
    };
    let percent = |done: u64, all: u64| done as f64 / all as f64 * 100.0;
    let _ = writeln!(
        text,
        "        {verb} {} files, {} total. Already {done} {} files ({:.2}%), {} total ({:.2}%)",
        of.files,
        size(of.bytes),
        of.files_done,
        percent(of.files_done, of.files),
        size(of.bytes_done),
        percent(of.bytes_done, of.bytes)
    );
}

fn files(text: &mut String, session: &StreamSession, is_sent: bool, peer: &str) {
    let done = if is_sent { "sent to" } else { "received from" };
    for StreamFile { name, bytes, bytes_done, .. } in
        session.files.iter().filter(|file| file.is_sent == is_sent)
    {
        let percent = (bytes_done * 100).checked_div(*bytes).unwrap_or(100);
        let _ = writeln!(
            text,
            "            {name} {bytes_done}/{bytes} bytes ({percent}%) {done} idx:{}/{peer}",
            session.index
        );
    }
}

/// A line that Cassandra has not: it is behind all that Cassandra says of the session.
fn speed(text: &mut String, session: &StreamSession) {
    let rate = session.bytes_per_second as f64 / MIB;
    let _ = match session.seconds_left {
        Some(left) => writeln!(text, "        {rate:.2} MiB/s, {left} s left"),
        None => writeln!(text, "        {rate:.2} MiB/s"),
    };
}

/// The text of `getstreamthroughput` and `getinterdcstreamthroughput`; none where only the precise
/// form would be right.
pub(super) fn limit(limits: &StreamLimits, of: StreamLimit, unit: RateUnit) -> Option<String> {
    let bytes = match (of.is_whole, of.is_far) {
        (false, false) => limits.parts,
        (false, true) => limits.far_parts,
        (true, false) => limits.whole,
        (true, true) => limits.far_whole,
    };
    let of = match (of.is_whole, of.is_far) {
        // Cassandra's nodetool does not say which one then
        (false, true) if unit == RateUnit::PreciseMegabits => "stream throughput",
        (false, false) => "stream throughput",
        (false, true) => "inter-datacenter stream throughput",
        (true, false) => "entire SSTable stream throughput",
        (true, true) => "entire SSTable inter-datacenter stream throughput",
    };
    let rate = bytes as f64;
    let shown = match unit {
        _ if bytes == 0 => "unlimited".to_owned(),
        RateUnit::Mebibytes => format!("{} MiB/s", double(rate / MIB)),
        RateUnit::PreciseMegabits => format!("{} Mb/s", double(rate / MEGABIT)),
        RateUnit::Megabits if (rate / MEGABIT).fract() == 0.0 => {
            format!("{} Mb/s", (rate / MEGABIT) as u64)
        }
        RateUnit::Megabits => return None,
    };
    Some(format!("Current {of}: {shown}\n"))
}
