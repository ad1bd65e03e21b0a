//! The disk as somebody sees and changes it who is not the node: a test, or damage.

use std::io;
use std::path::Path;

use super::{DiskModel, Ino, Node};

impl DiskModel {
    /// The live content of a file; None if there is none at the path.
    pub fn read_file(&self, path: &Path) -> Option<Vec<u8>> {
        let ino = self.lookup(path).ok()?;
        self.file(ino).map(|file| file.live.clone())
    }

    /// Puts a file on the disk, durable, with the directories above it.
    pub fn write_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let above = path.parent().unwrap_or(Path::new("/"));
        let mut made = self.create_dir_all(above)?;
        let ino = match self.lookup(path) {
            Ok(ino) => ino,
            Err(_) => {
                let (ino, op) = self.create(path)?;
                made.push(op);
                ino
            }
        };
        self.set_len(ino, 0)?;
        self.write(ino, 0, bytes)?;
        let file = self.file_mut(ino)?;
        file.durable.clone_from(&file.live);
        file.pending.clear();
        for op in std::mem::take(&mut self.names) {
            if made.contains(&op.id) {
                self.make_durable(&op.op);
            } else {
                self.names.push(op);
            }
        }
        Ok(())
    }

    /// Damages a file behind its owner's back: the live and the durable image. False if there is no
    /// file at the path.
    pub fn damage(&mut self, path: &Path, mut f: impl FnMut(&mut Vec<u8>)) -> bool {
        let Ok(file) = self.lookup(path).and_then(|ino| self.file_mut(ino)) else { return false };
        f(&mut file.live);
        f(&mut file.durable);
        true
    }

    /// Takes a file away behind its owner's back, now and durably. False if there is none at the
    /// path.
    pub fn lose(&mut self, path: &Path) -> bool {
        let Ok(op) = self.remove_file(path) else { return false };
        for name in std::mem::take(&mut self.names) {
            match name.id == op {
                true => self.make_durable(&name.op),
                false => self.names.push(name),
            }
        }
        self.collect();
        true
    }

    /// Flips one bit of a file, on the disk and in the cache.
    pub(crate) fn flip_bit(&mut self, ino: Ino, bit: u64) {
        let Ok(file) = self.file_mut(ino) else { return };
        for image in [&mut file.live, &mut file.durable] {
            if let Some(byte) = image.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    /// Writes the live image of the tree at `from` to a real directory, which must be empty or
    /// missing. False when there is no such tree.
    pub fn write_tree_to(&self, from: &Path, target: &Path) -> io::Result<bool> {
        let Ok(top) = self.lookup(from) else { return Ok(false) };
        let mut todo = vec![(target.to_path_buf(), top)];
        while let Some((path, ino)) = todo.pop() {
            match self.nodes.get(&ino) {
                Some(Node::File(file)) => std::fs::write(path, &file.live)?,
                Some(Node::Dir(dir)) => {
                    std::fs::create_dir_all(&path)?;
                    todo.extend(dir.live.iter().map(|(name, ino)| (path.join(name), *ino)));
                }
                None => {}
            }
        }
        Ok(true)
    }
}
