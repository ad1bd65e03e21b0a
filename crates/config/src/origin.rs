//! Where a setting stands: which file, which line, in which spelling.

use std::collections::BTreeMap;

use crate::error::Error;

/// The place of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The name of the file, if it has one.
    pub file: Option<String>,
    /// Counted from 1.
    pub line: usize,
    /// The key as it is written there.
    pub written: String,
}

/// Of the settings that stand in a file, by today's names. One that was overridden stands in none.
pub(crate) type Origins = BTreeMap<&'static str, Origin>;

/// An error about a key, with its place and spelling where it has one.
pub(crate) fn located(origins: &Origins, error: Error) -> Error {
    let origin = error.key().and_then(|key| origins.get(key)).cloned();
    match origin {
        Some(at) => error.spelled(&at.written).at(at.file.as_deref(), at.line),
        None => error,
    }
}
