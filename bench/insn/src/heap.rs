//! The node's own heap, counted: with another one an operation would cost what it costs nobody.

use std::alloc::{GlobalAlloc, Layout};
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

use ::heap::Heap;

/// The allocator of a node, and how often it was asked.
pub struct Counting;

static TIMES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// How often memory was asked for, growing what there was included, and how many bytes.
#[derive(Clone, Copy)]
pub struct Allocated {
    pub times: u64,
    pub bytes: u64,
}

impl Allocated {
    /// Since the process began.
    pub fn so_far() -> Self {
        Self { times: TIMES.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
    }
}

impl Sub for Allocated {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { times: self.times - before.times, bytes: self.bytes - before.bytes }
    }
}

fn count(bytes: usize) {
    TIMES.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "an allocator can be counted only from within one")]
// SAFETY: each call is handed on as it came to an allocator that keeps the trait's promises, and
// what that one answers is answered; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those that are needed
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those that are needed
        unsafe { Heap.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes.saturating_sub(layout.size()));
        // SAFETY: the caller's promises are those that are needed
        unsafe { Heap.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that are needed
        unsafe { Heap.dealloc(at, layout) }
    }
}
