//! Processors that do not sleep while a latency is measured. A virtual machine's processor that has nothing to do is given back to its
//! host, and is late by milliseconds when it is wanted again: that would be the tail of every server that leaves a processor idle.
//! Not for servers with more threads than processors: the system's scheduler then lets some of them wait for others.

use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;

use crate::machine::Outcome;

/// On each processor something that only wants the time nobody else wants (`SCHED_IDLE`), until it is dropped.
pub struct Awake(Vec<Child>);

impl Awake {
    pub fn begin() -> Outcome<Self> {
        let mut awake = Self(Vec::new());
        for processor in 0..available_parallelism()?.get() {
            let mut busy = Command::new("taskset");
            busy.args(["-c", &processor.to_string(), "chrt", "--idle", "0"]);
            busy.args(["sh", "-c", "while :; do :; done"]);
            busy.stdin(Stdio::null()).stdout(Stdio::null());
            awake.0.push(busy.spawn()?);
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for busy in &mut self.0 {
            // it may have failed by itself: nothing is left to end then
            let _ = busy.kill();
            let _ = busy.wait();
        }
    }
}
