//! Payloads and trees that mean harm are refused, and take no memory.

use proptest::prelude::*;
use repair::tree::{LEAVES_MAX, NODE_DEPTH_MAX, TREE_BYTES_MIN, Tree, TreeError};
use repair::wire::*;
use types::{ReadError, Reader, Token, TokenRange, WriteBytes};

use crate::common::{bytes_of, hex, vectors};

fn read(bytes: &[u8]) -> Result<Tree, TreeError> {
    Tree::read(&mut Reader::new(bytes), LEAVES_MAX)
}

/// Where a tree's fields are.
const MOST_AT: usize = 1;
const SIZE_AT: usize = 9;
const NAME_AT: usize = 19;
const LEFT_AT: usize = NAME_AT + 43;
const NODES_AT: usize = LEFT_AT + 24;

fn of_depth(depth: u8) -> Vec<u8> {
    bytes_of(&Tree::new(TokenRange::ALL, depth))
}

#[test]
fn trees_that_lie_about_their_size() {
    assert_eq!(of_depth(0).len(), TREE_BYTES_MIN);
    let with_size = |size: i64| {
        let mut bytes = of_depth(3);
        bytes[SIZE_AT..SIZE_AT + 8].copy_from_slice(&size.to_be_bytes());
        read(&bytes)
    };
    for size in [i64::MIN, -1, 0, 1, 7, 1 << 31, i64::MAX] {
        assert_eq!(with_size(size), Err(TreeError::Leaves(size)), "{size}");
    }
    // more than there are: as Cassandra says itself of short ranges; nothing is allocated for it
    for size in [8, 9, (1 << 31) - 1] {
        let tree = with_size(size).expect("it has fewer");
        assert!(tree.memory() < 8 * 32 + 512, "{} bytes", tree.memory());
    }
    // a limit of leaves that is never looked at is kept as it came
    let mut bytes = of_depth(3);
    bytes[MOST_AT..MOST_AT + 8].copy_from_slice(&(-5_i64).to_be_bytes());
    assert_eq!(bytes_of(&read(&bytes).unwrap()), bytes);
    let allowed = |leaves| Tree::read(&mut Reader::new(&of_depth(3)), leaves).is_ok();
    assert_eq!([allowed(7), allowed(8)], [false, true]);
}

#[test]
fn nodes_that_no_tree_has() {
    let changed = |at: usize, byte: u8| {
        let mut bytes = of_depth(2);
        bytes[at] = byte;
        read(&bytes)
    };
    assert_eq!(changed(0, 127), Err(TreeError::Depth(127)));
    assert_eq!(changed(0, 0x80), Err(TreeError::Depth(-128)));
    let name = Err(TreeError::Partitioner("Org.apache.cassandra.dht.Murmur3Partitioner".into()));
    assert_eq!(
        changed(NAME_AT, b'O').map_err(|e| e.to_string()),
        name.map_err(|e: TreeError| { e.to_string() })
    );
    assert_eq!(changed(NODES_AT, 3), Err(TreeError::Node(3)));
    assert_eq!(changed(NODES_AT, 0), Err(TreeError::Node(0)));
    assert_eq!(changed(NODES_AT + 4, 9), Err(TreeError::Read(ReadError::Length(9))));
    assert!(matches!(changed(NODES_AT + 12, 1), Err(TreeError::Midpoint(_))));
    let leaf = of_depth(0).len() - 1;
    for length in [1, 31, 33, 0xff] {
        let mut bytes = of_depth(0);
        bytes[leaf] = length;
        assert_eq!(read(&bytes), Err(TreeError::Hash(length)));
    }
}

/// A tree that goes down to single tokens on the left is as deep as any, and not deeper.
#[test]
fn trees_are_no_deeper_than_tokens_allow() {
    let mut bytes = of_depth(0);
    bytes.truncate(NODES_AT);
    bytes[SIZE_AT..SIZE_AT + 8].copy_from_slice(&1000_i64.to_be_bytes());
    let (mut to, mut depth) = (i128::from(i64::MAX) + 1, 0);
    let from = i128::from(i64::MIN);
    // of the whole ring the first midpoint is -1
    to -= 1;
    let mut deep = bytes.clone();
    while (to - from) / 2 > 0 {
        to = from + (to - from) / 2;
        deep.put_u8(2);
        Token(to as i64).write(&mut deep);
        depth += 1;
    }
    let inner_only = deep.clone();
    (0..=depth).for_each(|_| deep.put(&[1, 0]));
    let tree = read(&deep).expect("a tree");
    assert_eq!(tree.leaf_count(), depth + 1);
    assert!(depth + 1 >= usize::from(NODE_DEPTH_MAX) && depth <= usize::from(NODE_DEPTH_MAX));
    assert_eq!(bytes_of(&tree), deep);
    assert!(repair::tree::difference(&tree, &tree).unwrap().is_empty());
    // one level more
    let mut deeper = inner_only;
    deeper.put_u8(2);
    Token(from as i64).write(&mut deeper);
    deeper.put(&[1; 1000]);
    assert_eq!(read(&deeper), Err(TreeError::Midpoint(Token::MIN)));
}

#[test]
fn counts_that_the_bytes_cannot_hold() {
    for kind in ["snapshot", "prepare", "prepare_consistent_request", "sync_response"] {
        let parts = vectors("5.0.9", kind);
        let mut refused = 0;
        for parts in &parts {
            let bytes = hex(parts.last().unwrap());
            // a huge number over each place: where a count is, it is refused
            for at in 0..bytes.len().saturating_sub(3) {
                let mut bytes = bytes.clone();
                bytes[at..at + 4].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
                let mut reader = Reader::new(&bytes);
                let error = match kind {
                    "snapshot" => Snapshot::read(&mut reader).err(),
                    "prepare" => Prepare::read(&mut reader).err(),
                    "sync_response" => SyncResponse::read(&mut reader).err(),
                    _ => PrepareConsistentRequest::read(&mut reader).err(),
                };
                let count = PayloadError::Read(ReadError::Length(i32::MAX.into()));
                refused += usize::from(error == Some(count));
            }
        }
        assert!(refused >= parts.len(), "{kind}: {refused}");
    }
}

#[test]
fn numbers_that_stand_for_nothing() {
    let prepare = hex(vectors("5.0.9", "prepare")[0].last().unwrap());
    let mut wrong = prepare.clone();
    *wrong.last_mut().unwrap() = 4;
    let error = Prepare::read(&mut Reader::new(&wrong)).unwrap_err();
    assert_eq!(error.to_string(), "invalid kind of preview 4");
    let mut state = [0; 20];
    state[19] = 6;
    let error = StatusResponse::read(&mut Reader::new(&state)).unwrap_err();
    assert_eq!(error.to_string(), "invalid state of a session 6");
    // bounds that are no range of (left,right], or whose ends are no tokens
    for (flags, is_range) in (0..=255_u8).map(|flags| (flags, flags == 5)) {
        let mut bytes = vec![0; 17];
        bytes.put(&[0; 4]);
        bytes.put_i32(1);
        bytes.put_u8(flags);
        TokenRange::ALL.write(&mut bytes);
        assert_eq!(Snapshot::read(&mut Reader::new(&bytes)).is_ok(), is_range, "{flags}");
    }
}

#[test]
fn all_trees_of_an_answer_count() {
    let mut bytes = Vec::new();
    let parts = vectors("5.0.9", "validation_response");
    let has_trees = |parts: &&Vec<&str>| parts[1] != "-";
    bytes.put(&hex(parts.iter().find(has_trees).unwrap()[2]));
    let mut response = ValidationResponse::read(&mut Reader::new(&bytes)).unwrap();
    let trees: Vec<Tree> = (0..5).map(|_| Tree::new(TokenRange::ALL, 20)).collect();
    response.trees = Some(trees);
    let mut bytes = Vec::new();
    response.write(&mut bytes).unwrap();
    let error = ValidationResponse::read(&mut Reader::new(&bytes)).unwrap_err();
    let leaves = TreeError::Leaves(1 << 20);
    assert_eq!(error, PayloadError::Tree { number: 4, error: leaves });
}

proptest! {
    /// Whatever one byte becomes, a tree is refused or is another tree that is written as it came.
    #[test]
    fn a_changed_tree_is_refused_or_kept(which in 0_usize..100, at in 0_usize..4000, byte: u8) {
        let parts = vectors("5.0.9", "split");
        let mut bytes = hex(parts[which][0]);
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(tree) = read(&bytes) {
            let again = bytes_of(&tree);
            prop_assert_eq!(&again[..], &bytes[..again.len()]);
        }
    }
}
