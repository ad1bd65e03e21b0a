//! One file of the model: its images, and the operations between them.

use std::rc::Rc;

use super::{OpId, SECTOR};
use crate::rng::Rng;

/// A change of a file.
#[derive(Clone, Debug)]
pub(super) enum DataOp {
    Write { offset: u64, bytes: Rc<[u8]>, from: usize, to: usize },
    SetLen(u64),
}

impl DataOp {
    /// The bytes of the file that it writes.
    pub fn range(&self) -> (u64, u64) {
        match self {
            Self::Write { offset, from, to, .. } => (offset + *from as u64, offset + *to as u64),
            Self::SetLen(_) => (0, 0),
        }
    }

    pub fn len_after(&self, len: u64) -> u64 {
        match self {
            // Writing nothing does not grow a file.
            Self::Write { from, to, .. } if from == to => len,
            Self::Write { .. } => len.max(self.range().1),
            Self::SetLen(n) => *n,
        }
    }
}

/// Begun, and not known to be durable.
#[derive(Clone, Debug)]
pub(super) struct Pending<T> {
    pub id: OpId,
    /// When it ended; a sync covers it only if that was before the sync began.
    pub ended: Option<u64>,
    /// A sync that covered it failed: no later sync will make it durable.
    pub forsaken: bool,
    pub op: T,
}

impl<T> Pending<T> {
    pub fn covered_by(&self, sync_began: u64) -> bool {
        !self.forsaken && self.ended.is_some_and(|ended| ended < sync_began)
    }
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileNode {
    pub live: Vec<u8>,
    pub durable: Vec<u8>,
    pub pending: Vec<Pending<DataOp>>,
    /// A change of size raced with a sync: the order of what is pending is not that of the live
    /// image.
    pub raced: bool,
    pub links: u32,
    pub opens: u32,
}

/// What an unsynced state comes to at a power cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Lost,
    Kept,
    /// The first so many operations are there, the rest not.
    Prefix,
    /// Each piece by itself, with so many chances in 8.
    Coins(u64),
}

impl Fate {
    pub fn draw(rng: &Rng) -> Self {
        match rng.below(5) {
            0 => Self::Lost,
            1 => Self::Kept,
            2 => Self::Prefix,
            _ => Self::Coins(rng.between(1, 7)),
        }
    }

    pub fn keeps(self, rng: &Rng, at: usize, prefix: usize) -> bool {
        match self {
            Self::Lost => false,
            Self::Kept => true,
            Self::Prefix => at < prefix,
            Self::Coins(p) => rng.below(8) < p,
        }
    }
}

/// What a power cut did to operations that no sync had covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Those of which nothing is left.
    pub lost: u64,
    /// Writes of which a part is left.
    pub torn: u64,
}

impl FileNode {
    /// A sync ended that began at `began`. Failed, what it covered is forsaken.
    pub fn sync_ended(&mut self, began: u64, ok: bool) {
        if !ok {
            for op in self.pending.iter_mut().filter(|op| op.covered_by(began)) {
                op.forsaken = true;
            }
            return;
        }
        let mut left: Vec<Pending<DataOp>> = Vec::new();
        for op in std::mem::take(&mut self.pending) {
            if !op.covered_by(began) {
                left.push(op);
                continue;
            }
            apply(&mut self.durable, &op.op, |_| true);
            // What is older and still pending must not come back over it.
            let sizes = |ops: &[Pending<DataOp>]| {
                ops.iter().filter(|op| matches!(op.op, DataOp::SetLen(_))).count()
            };
            let before = sizes(&left);
            left = left.into_iter().flat_map(|old| subtract(old, &op.op)).collect();
            self.raced |= sizes(&left) != before;
        }
        self.pending = left;
        if self.raced && self.pending.is_empty() {
            self.raced = false;
            // A size that raced with the sync is settled as the processes saw it.
            self.durable.clone_from(&self.live);
        }
    }

    /// Leaves what a power cut may leave, with a chosen fate of what is not durable or any.
    pub fn power_cut(&mut self, rng: &Rng, chosen: Option<Fate>) -> Cut {
        let pending = std::mem::take(&mut self.pending);
        let mut cut = Cut::default();
        if pending.is_empty() {
            self.live = self.durable.clone();
            return cut;
        }
        let fate = chosen.unwrap_or_else(|| Fate::draw(rng));
        let prefix = rng.below(pending.len() as u64 + 1) as usize;
        let mut image = std::mem::take(&mut self.durable);
        let mut lens = vec![image.len() as u64];
        for (at, op) in pending.iter().enumerate() {
            let len = lens.last().copied().unwrap_or(0);
            lens.push(op.op.len_after(len));
            match (&op.op, fate) {
                // Each sector by itself.
                (DataOp::Write { .. }, Fate::Coins(p)) => {
                    let (mut kept, mut lost) = (0, 0);
                    apply(&mut image, &op.op, |_| {
                        let keep = rng.below(8) < p;
                        *(if keep { &mut kept } else { &mut lost }) += 1;
                        keep
                    });
                    cut.torn += u64::from(kept > 0 && lost > 0);
                    cut.lost += u64::from(kept == 0 && lost > 0);
                }
                _ if fate.keeps(rng, at, prefix) => apply(&mut image, &op.op, |_| true),
                _ => cut.lost += 1,
            }
        }
        let len = match fate {
            Fate::Lost => lens[0],
            Fate::Kept => lens[lens.len() - 1],
            Fate::Prefix => lens[prefix],
            // The size goes its own way.
            Fate::Coins(_) => lens[rng.below(lens.len() as u64) as usize],
        };
        image.resize(len as usize, 0);
        self.durable = image;
        self.live = self.durable.clone();
        cut
    }
}

/// Applies an operation to an image, sector by sector as `keep` says.
pub(super) fn apply(image: &mut Vec<u8>, op: &DataOp, mut keep: impl FnMut(u64) -> bool) {
    let DataOp::Write { offset, bytes, from, to } = op else {
        if let DataOp::SetLen(len) = op {
            image.resize(*len as usize, 0);
        }
        return;
    };
    let mut at = *from;
    while at < *to {
        let start = offset + at as u64;
        let sector = start / SECTOR;
        let next = *to.min(&(((sector + 1) * SECTOR - offset) as usize));
        // With everything kept there is no reason to go by sectors.
        if keep(sector) {
            let end = start as usize + (next - at);
            if image.len() < end {
                image.resize(end, 0);
            }
            image[start as usize..end].copy_from_slice(&bytes[at..next]);
        }
        at = next;
    }
}

/// What is left of an older pending operation once a newer one is durable.
fn subtract(old: Pending<DataOp>, new: &DataOp) -> Vec<Pending<DataOp>> {
    let DataOp::Write { offset, bytes, from, to } = &old.op else {
        // An older size may still come, unless it would cut off what is durable now.
        let keep = match (&old.op, new) {
            (DataOp::SetLen(len), DataOp::Write { .. }) => *len >= new.range().1,
            _ => false,
        };
        return if keep { vec![old] } else { Vec::new() };
    };
    let (start, end) = old.op.range();
    let (cut_start, cut_end) = match new {
        DataOp::Write { .. } => new.range(),
        DataOp::SetLen(len) => (*len, u64::MAX),
    };
    if cut_end <= start || end <= cut_start || cut_start == cut_end {
        return vec![old];
    }
    let piece = |from: usize, to: usize| {
        let op = DataOp::Write { offset: *offset, bytes: bytes.clone(), from, to };
        (from < to).then_some(Pending { id: old.id, ended: old.ended, forsaken: old.forsaken, op })
    };
    let at = |position: u64| (position.clamp(start, end) - offset) as usize;
    [piece(*from, at(cut_start)), piece(at(cut_end), *to)].into_iter().flatten().collect()
}
