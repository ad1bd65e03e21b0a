//! Looking at a node's disk while it changes, for tests that cut the power anywhere.

use std::fmt::Debug;
use std::path::Path;
use std::rc::Rc;

use crate::disk_model::DiskModel;

/// A kind of change of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A file is created.
    Create,
    /// Bytes are written to a file.
    Write,
    /// A file is cut, or grows by space reserved for it.
    Resize,
    /// A file is synced.
    Sync,
    /// A file or directory gets another name; its path is the new one.
    Rename,
    /// A file gets a second name; its path is that.
    Link,
    /// A file's name goes.
    Remove,
    /// A directory is made.
    MakeDir,
    /// A directory goes, with all in it.
    RemoveDir,
    /// A directory is synced.
    SyncNames,
}

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing of it has happened.
    Before,
    /// It is under way: a power cut may leave a part of it.
    During,
    /// It has ended; who asked for it does not know yet.
    After,
}

/// Who looks.
#[derive(Clone)]
pub(crate) struct Watch(Rc<dyn Fn(Change, &Path, Phase, &DiskModel)>);

impl Watch {
    pub fn new(f: impl Fn(Change, &Path, Phase, &DiskModel) + 'static) -> Self {
        Self(Rc::new(f))
    }

    pub fn tell(&self, change: Change, path: &Path, phase: Phase, model: &DiskModel) {
        (self.0)(change, path, phase, model);
    }
}

impl Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
