//! What a shard that runs has of the outside: its ring, helper threads, clock and randomness.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;

use super::helper::Pool;
use super::ring::Ring;
use crate::recorder::Recorder;

/// The outside of one shard.
pub(crate) struct Driver {
    pub ring: Ring,
    pub base: std::time::Instant,
    pub files: Arc<Pool>,
    pub helpers: Arc<Pool>,
    pub spare: Arc<Pool>,
    pub recorder: Option<Recorder>,
    pub random: RandomPool,
    /// Until when (monotonic nanoseconds) files take nothing at once: a write of that kind was held
    /// up.
    pub held_up_until: Cell<u64>,
}

/// Randomness from the kernel, fetched in pieces: a system call for every 32 numbers.
#[derive(Default)]
pub(crate) struct RandomPool {
    bytes: RefCell<Vec<u8>>,
    left: Cell<usize>,
}

impl RandomPool {
    pub fn next(&self) -> u64 {
        let mut bytes = self.bytes.borrow_mut();
        if self.left.get() < 8 {
            bytes.resize(256, 0);
            fill_random(bytes.as_mut_slice());
            self.left.set(bytes.len());
        }
        let end = self.left.get();
        self.left.set(end - 8);
        let mut out = [0; 8];
        // Taken once, and not left behind.
        out.swap_with_slice(&mut bytes[end - 8..end]);
        u64::from_le_bytes(out)
    }
}

impl Driver {
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Bytes of randomness from the kernel.
#[expect(unsafe_code, reason = "getrandom has no safe wrapper in std")]
pub(crate) fn fill_random(mut out: &mut [u8]) {
    while !out.is_empty() {
        // SAFETY: the buffer is live and of the length given.
        let n = unsafe { libc::getrandom(out.as_mut_ptr().cast(), out.len(), 0) };
        match usize::try_from(n) {
            Ok(n) => out = out.get_mut(n..).unwrap_or_default(),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            // Going on without randomness would give secrets away.
            Err(_) => panic!("cannot get random bytes from the kernel (getrandom)"),
        }
    }
}
