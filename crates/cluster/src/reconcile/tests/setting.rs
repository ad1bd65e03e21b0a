//! A read, and the replicas that it is made of.

use std::sync::Arc;

use internode::payload::read::{Limits, ReadCommand, RowChoice, RowsOf, Target};
use proptest::prelude::*;
use rows::{Bound, Layout, PartitionUpdate, compare};
use schema::Table;

use super::facts::{KEYS, Known, bound, clustering, key_of, known, table, updates};
use super::replica::{all_of, answer, command, everything, is_reversed};
use crate::reconcile::{Given, Partition, decode};

pub const NO_LIMIT: i32 = i32::MAX;

/// Replicas and a read.
#[derive(Clone, Debug)]
pub struct Case {
    pub is_counter: bool,
    pub replicas: usize,
    pub known: Vec<Known>,
    /// One partition, or all.
    pub key: Option<u8>,
    pub reversed: bool,
    pub choice: RowChoice,
    pub limits: (i32, i32),
    /// Most groups, and of how many columns they are.
    pub groups: Option<(i32, i32)>,
}

fn limit() -> impl Strategy<Value = i32> {
    prop_oneof![1 => Just(NO_LIMIT), 2 => 1..6]
}

fn choice() -> impl Strategy<Value = RowChoice> {
    let all = || RowChoice::Slices(vec![(Bound::bottom(), Bound::top())]);
    prop_oneof![
        2 => Just(all()),
        1 => (bound(true), bound(false)).prop_map(move |(start, end)| {
            match compare(&table(false).layout, &start, &end).is_lt() {
                true => RowChoice::Slices(vec![(start, end)]),
                false => all(),
            }
        }),
        1 => prop::collection::vec(clustering(), 1..5).prop_map(RowChoice::Names),
    ]
}

pub fn case() -> impl Strategy<Value = Case> {
    let key = prop_oneof![3 => Just(None), 1 => (0..KEYS).prop_map(Some)];
    let groups = prop_oneof![2 => Just(None), 1 => (1..4, 0..3).prop_map(Some)];
    let is_counter = prop::bool::weighted(0.2);
    let what = (key, any::<bool>(), choice(), (limit(), limit()), groups);
    (is_counter, 1usize..5, known(), what).prop_map(|(is_counter, replicas, known, what)| {
        let (key, reversed, choice, limits, groups) = what;
        Case { is_counter, replicas, known, key, reversed, choice, limits, groups }
    })
}

/// A case with what its replicas have.
pub struct Setting {
    pub table: Arc<Table>,
    pub command: ReadCommand,
    pub replicas: Vec<Vec<PartitionUpdate>>,
}

impl Case {
    pub fn set(&self) -> Setting {
        let table = table(self.is_counter);
        let rows = RowsOf { reversed: self.reversed, choice: self.choice.clone() };
        let target = match self.key {
            Some(key) => Target::Partition { key: key_of(key).into(), rows },
            None => Target::Range { keys: everything(), rows, after: None },
        };
        let command = command(&table, target, Limits::of_rows(self.limits.0, self.limits.1));
        let replicas = (0..self.replicas).map(|replica| updates(&table, &self.known, replica));
        Setting { replicas: replicas.collect(), table, command }
    }
}

impl Setting {
    pub fn given(&self) -> Vec<Given> {
        let given = |replica: &Vec<PartitionUpdate>| {
            let answer = answer(&self.table, &self.command, replica);
            decode(&self.table, &self.command, &answer).expect("what a replica gives")
        };
        self.replicas.iter().map(given).collect()
    }

    pub fn all(&self) -> Vec<Partition> {
        let replicas: Vec<_> = self.replicas.iter().map(|replica| &replica[..]).collect();
        all_of(&self.table, &self.command, &replicas)
    }

    pub fn reversed(&self) -> bool {
        is_reversed(&self.command)
    }

    pub fn layout(&self) -> &Layout {
        &self.table.layout
    }
}
