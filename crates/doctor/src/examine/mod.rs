//! From facts to findings.

mod disks;
mod network;
mod ring;
mod system;

use crate::facts::Facts;
use crate::report::Report;

/// Judges all facts.
pub fn examine(facts: &Facts) -> Report {
    let mut report = Report::default();
    system::kernel(facts, &mut report);
    disks::directories(facts, &mut report);
    disks::devices(facts, &mut report);
    system::memory(facts, &mut report);
    system::limits(facts, &mut report);
    system::clock(facts, &mut report);
    system::cpu(facts, &mut report);
    network::settings(facts, &mut report);
    network::cards(facts, &mut report);
    ring::ring(facts, &mut report);
    report.finish()
}
