//! A node's disk: the shared model, and the faults that it has.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Inner;
use super::watch::{Change, Phase, Watch};
use crate::disk_model::DiskModel;

/// What fails of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// Reads, with EIO.
    Read,
    /// Writes, with EIO, after a part of the bytes.
    Write,
    /// Syncs, with EIO; what they covered is never written.
    Sync,
    /// Syncs of directories, with EIO; the names that they covered are never written.
    SyncNames,
    /// Writes that need space, with ENOSPC.
    Full,
}

/// The disk of one node; `one_in` faults are off at 0.
#[derive(Default)]
pub(crate) struct SimDisk {
    pub model: RefCell<DiskModel>,
    pub read_error: Cell<u64>,
    pub write_error: Cell<u64>,
    pub sync_error: Cell<u64>,
    pub sync_lie: Cell<u64>,
    pub no_space: Cell<bool>,
    pub slow: Cell<u64>,
    /// Part of the path of files of which something fails each time.
    pub broken: RefCell<Option<(String, FileFault)>>,
    /// Who is told of every change.
    pub watch: RefCell<Option<Watch>>,
    /// Files that the node has locked.
    pub locks: RefCell<BTreeSet<PathBuf>>,
}

impl SimDisk {
    pub fn breaks(&self, path: &Path, what: FileFault) -> bool {
        let broken = self.broken.borrow();
        broken.as_ref().is_some_and(|(part, fails)| {
            *fails == what && path.to_string_lossy().contains(part.as_str())
        })
    }

    /// Tells whoever watches of a change.
    pub fn tell(&self, change: Change, path: &Path, phase: Phase, model: &DiskModel) {
        if let Some(watch) = &*self.watch.borrow() {
            watch.tell(change, path, phase, model);
        }
    }

    pub fn process_died(&self) {
        self.locks.borrow_mut().clear();
        self.model.borrow_mut().process_died();
    }

    /// Flips one bit of a file whose path contains `part`.
    pub fn rot(&self, world: &Inner, part: &str) {
        let mut model = self.model.borrow_mut();
        let files = model.files();
        let fits: Vec<_> =
            files.iter().filter(|(path, bytes)| path.contains(part) && !bytes.is_empty()).collect();
        let Some((path, bytes)) = fits.get(world.rng.below(fits.len() as u64) as usize) else {
            return;
        };
        if let Ok(ino) = model.lookup(Path::new(path)) {
            model.flip_bit(ino, world.rng.below(bytes.len() as u64 * 8));
            world.fired("bit_rot");
        }
    }
}
