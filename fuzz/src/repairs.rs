//! What other nodes' messages of repair carry, and Merkle trees. What is understood must come back.

use repair::tree::{LEAVES_MAX, Tree, difference};
use repair::wire::*;
use types::Reader;

/// Reads, writes, and reads again.
macro_rules! again {
    ($name:ident, $bytes:expr) => {
        if let Ok(message) = $name::read(&mut Reader::new($bytes)) {
            let mut out = Vec::new();
            let _ = message.write(&mut out);
            assert_eq!($name::read(&mut Reader::new(&out)), Ok(message), stringify!($name));
        }
    };
}

/// The first byte says what the rest is.
pub fn messages(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 12 {
        0 => again!(Prepare, bytes),
        1 => again!(ValidationRequest, bytes),
        2 => again!(ValidationResponse, bytes),
        3 => again!(SyncRequest, bytes),
        4 => again!(SyncResponse, bytes),
        5 => again!(Snapshot, bytes),
        6 => again!(PrepareConsistentRequest, bytes),
        7 => again!(PrepareConsistentResponse, bytes),
        8 => again!(FinalizePromise, bytes),
        9 => again!(StatusResponse, bytes),
        10 => again!(JobDescription, bytes),
        _ => {
            again!(Cleanup, bytes);
            again!(FinalizePropose, bytes);
            again!(FinalizeCommit, bytes);
            again!(FailSession, bytes);
            again!(StatusRequest, bytes);
        }
    }
}

/// Trees, one behind the other: each is written as it came, and compared with the one before it.
pub fn trees(data: &[u8]) {
    let mut reader = Reader::new(data);
    let mut before: Option<Tree> = None;
    loop {
        let start = reader.position();
        let Ok(tree) = Tree::read(&mut reader, LEAVES_MAX) else { return };
        let came = data.get(start..reader.position()).unwrap_or_default();
        let mut out = Vec::new();
        tree.write(&mut out);
        assert_eq!(out, came, "a tree is written as it came");
        assert!(tree.memory() <= 4 * came.len() + 1024, "{} bytes", tree.memory());
        assert_eq!(tree.leaves().count(), tree.leaf_count());
        assert_eq!(difference(&tree, &tree), Ok(Vec::new()));
        if let Some(before) = before.filter(|before| before.range() == tree.range()) {
            let there = difference(&before, &tree).expect("of the same range");
            let back = difference(&tree, &before).expect("of the same range");
            assert_eq!(there, back, "a difference has no direction");
        }
        let mut more = tree.clone();
        for (part, _) in tree.leaves().take(64) {
            // the least token is no partition's, and in no leaf for certain
            if part.right != types::Token::MIN {
                more.add(part.right, &[1; 32]).expect("a leaf's end is in the range");
            }
        }
        before = Some(tree);
    }
}
