//! Merkle trees against Cassandra's own, both ways.

use std::slice::from_ref;

use repair::tree::{LEAVES_MAX, Tree, TreeBudget, difference, difference_of_all};
use types::{Reader, Token, TokenRange};

use crate::common::*;

fn read(bytes: &[u8]) -> Tree {
    let mut reader = Reader::new(bytes);
    let tree = Tree::read(&mut reader, LEAVES_MAX).expect("Cassandra wrote it");
    reader.finish().expect("all of it");
    tree
}

/// A tree of the vectors, with tokens as they come, in order, and the other way round.
fn trees_of(range: TokenRange, depth: u8, tokens: &[Token]) -> Tree {
    let mut tree = Tree::new(range, depth);
    add_all(&mut tree, tokens);
    let (mut ascending, mut descending) = (Tree::new(range, depth), Tree::new(range, depth));
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable();
    add_all(&mut ascending, &sorted);
    sorted.reverse();
    add_all(&mut descending, &sorted);
    assert_eq!(ascending, tree);
    assert_eq!(descending, tree);
    tree
}

#[test]
fn are_written_and_read_as_cassandra_does() {
    let (mut trees, mut uneven, mut zeros) = (0, 0, 0);
    for parts in vectors("5.0.9", "tree") {
        let range = range(parts[0], parts[1]);
        let depth = parts[2].parse().unwrap();
        let tree = trees_of(range, depth, &tokens(parts[3]));
        let bytes = bytes_of(&tree);
        assert_eq!(shown(&bytes), parts[4], "{range:?} depth {depth}");
        let again = read(&bytes);
        assert_eq!(again, tree);
        assert_eq!(again.leaf_count(), tree.leaves().count());
        let whole = tree.leaves().map(|(part, _)| part).reduce(|all, part| {
            assert_eq!(all.right, part.left, "leaves are next to each other");
            TokenRange { left: all.left, right: part.right }
        });
        assert_eq!(whole, Some(range));
        trees += 1;
        uneven += usize::from(tree.leaf_count() < 1 << depth);
        zeros += tree.leaves().filter(|(_, hash)| *hash == Some(&[0; 32])).count();
    }
    assert!(trees >= 300 && uneven >= 15 && zeros >= 30, "{trees} {uneven} {zeros}");
}

#[test]
fn deep_trees_of_the_whole_ring_are_cassandras() {
    for parts in vectors("5.0.9", "even") {
        let tree = Tree::new(TokenRange::ALL, parts[0].parse().unwrap());
        assert_eq!(tree.leaf_count().to_string(), parts[1]);
        assert_eq!(shown(&bytes_of(&tree)), parts[2]);
        assert_eq!(read(&bytes_of(&tree)), tree);
    }
}

#[test]
fn partitions_are_in_the_leaf_that_contains_them() {
    for parts in vectors("5.0.9", "tree") {
        let range = range(parts[0], parts[1]);
        for token in tokens(parts[3]) {
            let mut tree = Tree::new(range, parts[2].parse().unwrap());
            tree.add(token, &hash_of(token)).unwrap();
            for (part, hash) in tree.leaves() {
                assert_eq!(part.contains(token), hash.is_some(), "{token} in {part:?}");
            }
        }
    }
}

#[test]
fn differ_where_cassandra_says() {
    let (mut pairs, mut depths, mut found) = (0, 0, 0);
    for parts in vectors("5.0.9", "difference") {
        let range = range(parts[0], parts[1]);
        let tree = |depth: &str, own: &str| {
            let all = [tokens(parts[4]), tokens(own)].concat();
            trees_of(range, depth.parse().unwrap(), &all)
        };
        let (one, other) = (tree(parts[2], parts[5]), tree(parts[3], parts[6]));
        let differences = difference(&one, &other).unwrap();
        assert_eq!(show_ranges(&differences), parts[7], "{parts:?}");
        let (one, other) = (read(&bytes_of(&one)), read(&bytes_of(&other)));
        assert_eq!(difference(&one, &other).unwrap(), differences);
        let all = difference_of_all(&[one], &[other]).unwrap();
        assert_eq!(all, differences);
        pairs += 1;
        depths += usize::from(parts[2] != parts[3]);
        found += differences.len();
    }
    assert!(pairs >= 300 && depths >= 50 && found >= 500, "{pairs} {depths} {found}");
}

#[test]
fn what_is_below_equal_nodes_is_not_looked_at() {
    let (mut pairs, mut unseen) = (0, 0);
    for parts in vectors("5.0.9", "moved") {
        let range = range(parts[0], parts[1]);
        let (first, second) = (tokens(parts[3]), tokens(parts[4]));
        let depth = parts[2].parse().unwrap();
        let (mut one, mut other) = (Tree::new(range, depth), Tree::new(range, depth));
        for (token, moved) in first.iter().zip(&second) {
            one.add(*token, &hash_of(*token)).unwrap();
            other.add(*moved, &hash_of(*token)).unwrap();
        }
        add_all(&mut one, &tokens(parts[5]));
        let found = difference(&one, &other).unwrap();
        assert_eq!(show_ranges(&found), parts[6], "{parts:?}");
        let differing = one.leaves().zip(other.leaves()).filter(|(a, b)| a.1 != b.1);
        unseen += differing.filter(|(a, _)| !found.iter().any(|f| f.contains(a.0.right))).count();
        pairs += 1;
    }
    assert!(pairs == 120 && unseen >= 20, "{pairs} {unseen}");
}

#[test]
fn any_shape_is_read_written_and_compared() {
    let (mut shapes, mut found) = (0, 0);
    for parts in vectors("5.0.9", "split") {
        let (one, other) = (hex(parts[0]), hex(parts[1]));
        let (a, b) = (read(&one), read(&other));
        assert_eq!(bytes_of(&a), one);
        assert_eq!(bytes_of(&b), other);
        let differences = difference(&a, &b).unwrap();
        assert_eq!(show_ranges(&differences), parts[2]);
        // what is added finds its leaf in any shape
        for (part, _) in a.leaves() {
            let (mut more, token) = (a.clone(), part.right);
            if token == Token::MIN {
                continue;
            }
            more.add(token, &hash_of(token)).unwrap();
            let changed = a.leaves().zip(more.leaves()).filter(|(a, b)| a.1 != b.1);
            let changed: Vec<_> = changed.map(|(before, _)| before.0).collect();
            assert_eq!(changed, [part]);
        }
        shapes += usize::from(a.leaf_count() != b.leaf_count());
        found += differences.len();
    }
    assert!(shapes >= 50 && found >= 100, "{shapes} {found}");
}

#[test]
fn of_other_ranges_do_not_compare() {
    let range = |left, right| TokenRange { left: Token(left), right: Token(right) };
    let (a, b) = (Tree::new(range(0, 10), 1), Tree::new(range(0, 11), 1));
    assert!(difference(&a, &b).is_err());
    assert!(difference_of_all(from_ref(&a), from_ref(&b)).is_err());
    assert!(difference_of_all(&[a.clone(), b.clone()], &[b, a]).is_ok());
    let mut tree = Tree::new(range(0, 10), 1);
    for token in [0, 11, i64::MIN, -1] {
        assert!(tree.add(Token(token), &[1; 32]).is_err(), "{token}");
    }
}

#[test]
fn trees_are_in_cassandras_order() {
    let tree = |left, right| Tree::new(TokenRange { left: Token(left), right: Token(right) }, 0);
    let mut trees = [tree(0, 10), tree(-20, -10), tree(50, -30), tree(10, 50)];
    trees.sort_by(Tree::order);
    let lefts = trees.map(|tree| tree.range().left.0);
    assert_eq!(lefts, [50, -20, 0, 10]);
}

#[test]
fn are_written_in_steps() {
    for parts in vectors("5.0.9", "split") {
        let bytes = hex(parts[0]);
        let tree = read(&bytes);
        let nodes = 2 * tree.leaf_count() - 1;
        for step in [1, 2, 7, 1000] {
            let (mut writer, mut out, mut steps) = (tree.writer(), Vec::new(), 1);
            while writer.write_nodes(step, &mut out) {
                steps += 1;
            }
            assert_eq!(out, bytes);
            assert_eq!(steps, nodes.div_ceil(step));
            assert!(!writer.write_nodes(step, &mut out) && out == bytes);
        }
    }
}

#[test]
fn take_32_bytes_a_leaf() {
    let tree = Tree::new(TokenRange::ALL, 16);
    let leaves = 1 << 16;
    assert!(tree.memory() < leaves * 32 + leaves / 8 + 512, "{} bytes", tree.memory());
    assert!(read(&bytes_of(&tree)).memory() <= tree.memory());
}

#[test]
fn are_as_deep_as_memory_and_partitions_allow() {
    let budget = |bytes, factor, most| TreeBudget {
        session_space: bytes,
        replication_factor: factor,
        depth_max: most,
    };
    let mut steps = 0;
    for parts in vectors("5.0.9", "depth_of_bytes") {
        let (depth, bytes): (u8, u64) = (parts[0].parse().unwrap(), parts[1].parse().unwrap());
        for factor in [1, 3] {
            // the most bytes for a depth, and one more
            let all = bytes * u64::from(factor);
            let of = |bytes| budget(bytes, factor, 22).depth(1 << 30, 1 << 30);
            assert_eq!(of(all), depth, "{bytes} bytes");
            assert_eq!(of(all + u64::from(factor)), (depth + 1).min(22), "{bytes} bytes and one");
        }
        steps += 1;
    }
    assert_eq!(steps, 22);
    let ample = budget(u64::MAX, 1, 20);
    for parts in vectors("5.0.9", "depth_of_partitions") {
        let partitions = parts[0].parse().unwrap();
        let wanted: u8 = parts[1].parse().unwrap();
        assert_eq!(ample.depth(partitions, partitions), wanted.min(20), "{partitions}");
    }
    // shares of the budget: 679 bytes are a depth of 1
    assert_eq!(budget(1480 * 4, 1, 20).depth(1 << 20, 1 << 22), 3);
    assert_eq!(budget(1479 * 4, 1, 20).depth(1 << 20, 1 << 22), 2);
    assert_eq!(budget(1, 1, 20).depth(5, 5), 1);
    assert_eq!([ample.depth(0, 5), ample.depth(0, 0), budget(0, 0, 20).depth(9, 9)], [0, 0, 1]);
}
