//! Replicas are asked for their Merkle trees, and answer.

use types::{Reader, WriteBytes};

use super::error::PayloadError;
use super::job::JobDescription;
use super::parts::{Unwritable, count, put_count};
use crate::tree::{LEAVES_MAX, TREE_BYTES_MIN, Tree};

/// A replica is to hash its data (`ValidationRequest`).
///
/// ```text
/// job, i32 now
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationRequest {
    /// The job.
    pub desc: JobDescription,
    /// The coordinator's time, in seconds since 1970: what has expired by then is left out. At
    /// messaging 12 it is signed, and ends in 2038.
    pub now: i64,
}

impl ValidationRequest {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        Ok(Self { desc: JobDescription::read(reader)?, now: reader.i32()?.into() })
    }

    /// Appends it. As Cassandra does, it drops what a time has beyond 32 bits.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.desc.write(out)?;
        out.put_i32(self.now as i32);
        Ok(())
    }
}

/// A replica's trees (`ValidationResponse`, `utils.MerkleTrees`).
///
/// ```text
/// job, bool success, [count, trees]
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationResponse {
    /// The job.
    pub desc: JobDescription,
    /// A tree for each of the job's ranges; `None` where validation failed. Cassandra writes them
    /// in [`Tree::order`].
    pub trees: Option<Vec<Tree>>,
}

impl ValidationResponse {
    /// Reads it. All of its trees together have at most [`LEAVES_MAX`] leaves.
    ///
    /// # Errors
    /// If it is malformed, or a tree is one that no node builds.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let desc = JobDescription::read(reader)?;
        if !reader.bool()? {
            return Ok(Self { desc, trees: None });
        }
        let count = count(reader, TREE_BYTES_MIN)?;
        let (mut trees, mut leaves_left) = (Vec::with_capacity(count), LEAVES_MAX);
        for number in 0..count {
            let tree = Tree::read(reader, leaves_left)
                .map_err(|error| PayloadError::Tree { number, error })?;
            leaves_left -= tree.leaf_count();
            trees.push(tree);
        }
        Ok(Self { desc, trees: Some(trees) })
    }

    /// Appends it, the trees in the order that they have.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.write_head(out)?;
        self.trees.iter().flatten().for_each(|tree| tree.write(out));
        Ok(())
    }

    /// Appends what comes before its trees, which the caller then writes in steps
    /// ([`Tree::writer`]).
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write_head(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.desc.write(out)?;
        out.put_bool(self.trees.is_some());
        match &self.trees {
            Some(trees) => put_count(out, trees.len()),
            None => Ok(()),
        }
    }
}
