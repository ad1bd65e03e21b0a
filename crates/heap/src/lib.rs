//! The heap of a node's process: where its memory comes from, and when it goes back.
//!
//! With `memory_pretouch` a node takes its budget at the start, and freed memory stays with the
//! process. What it takes later comes in small pages: the kernel may need milliseconds to make a
//! huge one.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as mi;

/// The allocator; the program that serves names it as its `#[global_allocator]`.
///
/// mimalloc, asked for an alignment only where its blocks have not got it anyway: of more than a
/// kilobyte it finds an aligned block the long way, which for rows in memtables is what they cost
/// most.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

/// What blocks are aligned to that are as large, in bytes (`MI_MAX_ALIGN_SIZE` in
/// `mimalloc/types.h`).
const ALIGNED: usize = 16;
/// What all blocks are aligned to, in bytes: a word.
const WORD: usize = 8;

fn is_aligned_anyway(layout: Layout) -> bool {
    layout.align() <= WORD || (layout.align() <= ALIGNED && layout.size() >= ALIGNED)
}

#[expect(unsafe_code, reason = "an allocator's interface")]
// SAFETY: blocks are mimalloc's: of the size that is asked for or more, nobody else's until they
// are freed, null where there is no memory; aligned as `is_aligned_anyway` says, or as they are
// asked for. What is freed or resized came from here, whichever way.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and any power of two will do
        let block = unsafe {
            match is_aligned_anyway(layout) {
                true => mi::mi_malloc(layout.size()),
                false => mi::mi_malloc_aligned(layout.size(), layout.align()),
            }
        };
        block.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`
        let block = unsafe {
            match is_aligned_anyway(layout) {
                true => mi::mi_zalloc(layout.size()),
                false => mi::mi_zalloc_aligned(layout.size(), layout.align()),
            }
        };
        block.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller gives back what came from here
        unsafe { mi::mi_free(block.cast()) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let block: *mut c_void = block.cast();
        // SAFETY: the caller gives back what came from here; the new size with the old alignment is
        // a layout
        let block = unsafe {
            let new = Layout::from_size_align_unchecked(size, layout.align());
            match is_aligned_anyway(new) {
                true => mi::mi_realloc(block, size),
                false => mi::mi_realloc_aligned(block, size, layout.align()),
            }
        };
        block.cast()
    }
}

/// `mi_option_purge_delay` in `mimalloc.h`, of which the bindings have no name: milliseconds until
/// freed memory goes back to the machine; negative: it stays.
const PURGE_DELAY: mi::mi_option_t = 15;
/// Bytes that are allocated at a time to touch memory: more than any class of sizes that is kept
/// apart.
const BLOCK_BYTES: usize = 1 << 20;

/// Takes memory by small pages alone from now on. The kernel clears a page when it is first
/// touched, and for a huge one may have to move others together: that holds a shard up for
/// milliseconds and more. What is there of huge pages stays.
#[expect(unsafe_code, reason = "prctl has no safe wrapper in std")]
pub fn by_small_pages() {
    // Not worth a start where it is refused: it is slower then, and as right.
    // SAFETY: with this option the call takes numbers and touches no memory of ours
    let _ = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

/// Keeps what is freed for the next who asks: what goes back to the machine costs a page fault and
/// the clearing of a page when it is needed again. The process is never smaller again than it once
/// was.
#[expect(unsafe_code, reason = "the allocator's settings are behind its C interface")]
pub fn keep_freed() {
    // SAFETY: the function checks the first number against its options, and writes the second into
    // that option's place, a word that whoever frees reads: the old value or the new one, both of
    // which it takes.
    unsafe { mi::mi_option_set(PURGE_DELAY, -1) };
}

/// Takes so many bytes of the machine and leaves them with the allocator, so that none of them has
/// to be taken and cleared later; only after [`keep_freed`].
pub fn touch(bytes: u64) {
    let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
    // written to, for a page that is only reserved costs as much as one that is not
    drop((0..blocks).map(|_| vec![1_u8; BLOCK_BYTES]).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    #[global_allocator]
    static HEAP: super::Heap = super::Heap;

    /// Kilobytes of this process that are in memory.
    fn resident() -> u64 {
        #[expect(clippy::disallowed_methods, reason = "no shard runs here")]
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_default()
    }

    #[test]
    #[expect(unsafe_code, reason = "an allocator's interface")]
    fn blocks_are_aligned_and_keep_what_is_in_them() {
        use std::alloc::{GlobalAlloc as _, Layout};
        let sizes = (1..200).chain([1008, 1016, 1023, 1024, 1025, 1151, 4097, 70_000, 3 << 20]);
        for (size, align) in sizes.flat_map(|size| (0..13).map(move |power| (size, 1 << power))) {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            for (other, zeroed) in [(size / 3 + 1, false), (size * 2 + 1, true)] {
                // SAFETY: sizes are not 0, each block is used within its size and given back once
                unsafe {
                    let block = match zeroed {
                        true => super::Heap.alloc_zeroed(layout),
                        false => super::Heap.alloc(layout),
                    };
                    assert!(!block.is_null() && block.addr().is_multiple_of(align), "{layout:?}");
                    let bytes =
                        std::slice::from_raw_parts_mut(block, if zeroed { size } else { 0 });
                    assert!(bytes.iter().all(|byte| *byte == 0), "{layout:?}");
                    block.write_bytes(size as u8 | 1, size);
                    let block = super::Heap.realloc(block, layout, other);
                    assert!(
                        !block.is_null() && block.addr().is_multiple_of(align),
                        "{layout:?} to {other}"
                    );
                    let kept = std::slice::from_raw_parts(block, size.min(other));
                    assert!(
                        kept.iter().all(|byte| *byte == size as u8 | 1),
                        "{layout:?} to {other}"
                    );
                    let layout = Layout::from_size_align(other, align).expect("a layout");
                    super::Heap.dealloc(block, layout);
                }
            }
        }
    }

    #[test]
    fn what_was_touched_stays_and_is_used_again() {
        super::keep_freed();
        let before = resident();
        super::touch(64 << 20);
        #[expect(unsafe_code, reason = "the allocator's settings are behind its C interface")]
        // SAFETY: it frees what nobody has; given back at once is what would be so in time
        unsafe {
            super::mi::mi_collect(true);
        }
        let touched = resident();
        assert!(touched > before + (48 << 10), "{before} KB, then {touched}");
        let small: Vec<Box<[u8; 1000]>> = (0..32 << 10).map(|_| Box::new([1; 1000])).collect();
        assert_eq!(small.len(), 32 << 10);
        let used = resident();
        assert!(used < touched + (16 << 10), "{touched} KB, then {used}");
    }
}
