//! What holds for a whole process, in one of its own.

#[test]
fn no_page_is_huge_after_it_was_asked_for() {
    heap::by_small_pages();
    #[expect(clippy::disallowed_methods, reason = "no shard runs here")]
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel says it");
    // older kernels do not say
    let line = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
    assert!(line.is_none_or(|enabled| enabled.trim() == "0"), "{line:?}");
}
