//! Writes down what is done to the disk, so that tests can build what a power cut may leave.

/// A log of disk operations; clones append to the same log.
#[derive(Clone, Debug, Default)]
pub struct Recorder;
