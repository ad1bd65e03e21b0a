//! The heap of a node's process: where its memory comes from, and when it goes back.

/// The allocator; the program that serves names it as its global one.
pub type Heap = mimalloc::MiMalloc;

/// The value for the program's `#[global_allocator]`.
pub const HEAP: Heap = mimalloc::MiMalloc;

/// `mi_option_purge_delay` in `mimalloc.h`, of which the bindings have no name: milliseconds until freed memory goes back
/// to the machine; negative: it stays.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// Bytes that are allocated at a time to touch memory: more than any class of sizes that is kept apart.
const BLOCK_BYTES: usize = 1 << 20;

/// Keeps what is freed for the next who asks: what goes back to the machine costs a page fault and the clearing of a page
/// when it is needed again. The process is never smaller again than it once was.
#[expect(unsafe_code, reason = "the allocator's settings are behind its C interface")]
pub fn keep_freed() {
    // SAFETY: the function checks the first number against its options, and writes the second into that option's place, a
    // word that whoever frees reads: the old value or the new one, both of which it takes.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}

/// Takes so many bytes of the machine and leaves them with the allocator, so that none of them has to be taken and
/// cleared later; only after [`keep_freed`].
pub fn touch(bytes: u64) {
    let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
    // written to, for a page that is only reserved costs as much as one that is not
    drop((0..blocks).map(|_| vec![1_u8; BLOCK_BYTES]).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    #[global_allocator]
    static HEAP: super::Heap = super::HEAP;

    /// Kilobytes of this process that are in memory.
    fn resident() -> u64 {
        #[expect(clippy::disallowed_methods, reason = "no shard runs here")]
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_default()
    }

    #[test]
    fn what_was_touched_stays_and_is_used_again() {
        super::keep_freed();
        let before = resident();
        super::touch(64 << 20);
        #[expect(unsafe_code, reason = "the allocator's settings are behind its C interface")]
        // SAFETY: it frees what nobody has; given back at once is what would be so in time
        unsafe {
            libmimalloc_sys::mi_collect(true);
        }
        let touched = resident();
        assert!(touched > before + (48 << 10), "{before} KB, then {touched}");
        let small: Vec<Box<[u8; 1000]>> = (0..32 << 10).map(|_| Box::new([1; 1000])).collect();
        assert_eq!(small.len(), 32 << 10);
        let used = resident();
        assert!(used < touched + (16 << 10), "{touched} KB, then {used}");
    }
}
