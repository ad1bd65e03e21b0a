//! Where facts come from: the files of a machine, or of a prepared one.

/// What a file system has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// All of it, in bytes.
    pub bytes: u64,
    /// What an ordinary user may still write, in bytes.
    pub free: u64,
    /// Files that it can have; 0: no fixed number.
    pub inodes: u64,
    /// Files that it can still take.
    pub inodes_free: u64,
}

/// What the kernel thinks of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// Does a time service keep it?
    pub is_synchronized: bool,
    /// How far it may be off at most, in microseconds.
    pub error_max_us: u64,
}

/// A machine to look at. What it cannot say is `None`, and no finding comes of it.
pub trait Source {
    /// The text of a file.
    fn read(&self, path: &str) -> Option<String>;
    /// The names in a folder; none if there is no such folder.
    fn list(&self, path: &str) -> Vec<String>;
    /// Where a path leads, all links followed.
    fn resolve(&self, path: &str) -> Option<String>;
    /// What the file system of a path has.
    fn space(&self, path: &str) -> Option<Space>;
    /// May the node make files in this folder?
    fn is_writable(&self, path: &str) -> Option<bool>;
    /// What the kernel thinks of its clock.
    fn clock(&self) -> Option<ClockState>;
    /// Does the kernel let a program use io_uring, and if not, why?
    fn io_uring(&self) -> Option<Result<(), String>>;
}
