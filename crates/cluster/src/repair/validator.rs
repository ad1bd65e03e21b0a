//! A shard hashes partitions into Merkle trees (`Validator`).

use std::rc::Rc;
use std::sync::Arc;

use repair::PartitionHasher;
use repair::tree::Tree;
use rows::{Deletion, RowRef, Unfiltered};
use schema::Table;
use storage::{Engine, KeyRef, StorageError, Validation, ValidationProgress, Visitor};
use types::{Token, TokenRange};

/// Hashes for repairs; on each shard.
pub(super) struct Validator {
    engine: Rc<Engine>,
}

/// A tree to be built: of which range, and how deep.
pub(super) type TreeShape = (TokenRange, u8);

impl Validator {
    pub fn new(engine: &Rc<Engine>) -> Rc<Self> {
        Rc::new(Self { engine: Rc::clone(engine) })
    }

    /// Builds the trees of some ranges, and says how many partitions there are.
    ///
    /// # Errors
    /// If the table is gone or cannot be read, or the node stops.
    pub async fn build(
        &self,
        of: Validation,
        shapes: &[TreeShape],
    ) -> Result<(Vec<Tree>, u64), StorageError> {
        let table: Arc<Table> = self.engine.store(of.table)?.table();
        let trees = shapes.iter().map(|(range, depth)| Tree::new(*range, *depth)).collect();
        let mut building = Building {
            hasher: PartitionHasher::new(&table.layout),
            trees,
            at: 0,
            token: Token::MIN,
        };
        let progress = ValidationProgress::default();
        self.engine.validate(&of, &mut building, &progress).await?;
        Ok((building.trees, progress.partitions.get()))
    }
}

/// Trees under way.
struct Building<'t> {
    hasher: PartitionHasher<'t>,
    trees: Vec<Tree>,
    /// The tree that the last partition was in.
    at: usize,
    /// That of the partition at hand.
    token: Token,
}

impl Building<'_> {
    /// The tree of a token: mostly that of the token before.
    fn tree(&mut self) -> Option<&mut Tree> {
        let count = self.trees.len();
        let holds =
            |at: &usize| self.trees.get(*at).is_some_and(|it| it.range().contains(self.token));
        let at = (0..count).map(|step| (self.at + step) % count).find(holds)?;
        self.at = at;
        self.trees.get_mut(at)
    }
}

impl Visitor for Building<'_> {
    fn start(&mut self, key: KeyRef<'_>, deletion: Deletion, static_row: Option<RowRef<'_>>) {
        self.token = key.token;
        self.hasher.start(key.bytes, deletion, static_row);
    }

    fn unfiltered(&mut self, unfiltered: Unfiltered<'_>) {
        self.hasher.unfiltered(unfiltered);
    }

    fn end(&mut self) {
        let (token, hash) = (self.token, self.hasher.finish());
        let tree = self.tree().expect("partitions that are validated are in one of the ranges");
        tree.add(token, &hash).expect("the tree is of a range that has the token");
    }
}
