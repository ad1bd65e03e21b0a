//! Processors that do not sleep while a latency is measured. A virtual machine's processor that has
//! nothing to do is given back to its host, and is late by milliseconds when it is wanted again:
//! that would be the tail of every server that leaves a processor idle.
//!
//! Not by something that runs where nobody else wants to (`SCHED_IDLE`): beside such a thread a
//! kernel (6.18 was seen) lets its own threads of that processor wait for seconds, and with them
//! the answers of the disk.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use crate::machine::Outcome;

/// Takes the longest time that a processor may need to be there again, in microseconds (32 bits);
/// it holds until the file is closed (Linux, `power/pm_qos_interface.rst`).
const LATENCY: &str = "/dev/cpu_dma_latency";
/// With none a processor that has nothing to do looks for something to do all the time, if it knows
/// how to.
const NO_LATENCY: i32 = 0;
const SHALLOWEST: &str = "/sys/devices/system/cpu/cpu0/cpuidle/state0/name";
const POLLS: &str = "POLL";

/// What `--awake` says.
pub fn parse(word: &str) -> Outcome<bool> {
    match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(format!("--awake is yes or no, not {other}").into()),
    }
}

/// Processors do not sleep until it is dropped.
#[expect(dead_code, reason = "the file is held open, not looked at")]
pub struct Awake(File);

impl Awake {
    /// # Errors
    /// If that takes rights that we do not have, or processors here only know how to sleep.
    pub fn begin() -> Outcome<Self> {
        let shallowest = fs::read_to_string(SHALLOWEST).unwrap_or_default();
        if shallowest.trim() != POLLS {
            return Err("processors here cannot be kept awake: --awake no".into());
        }
        let file = OpenOptions::new().write(true).open(LATENCY);
        let mut file = file.map_err(|e| format!("{LATENCY}: {e}; --awake no does without"))?;
        file.write_all(&NO_LATENCY.to_ne_bytes())?;
        Ok(Self(file))
    }
}
