//! What a node wants to get and to give, from all others together (`StreamPlan`).

use std::collections::BTreeMap;

use schema::TableId;
use types::{Address, TokenRange};

use crate::wire::{Operation, Request};

/// What is given to a node of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Give {
    /// The table.
    pub table: TableId,
    /// Its partitions: normalized.
    pub ranges: Vec<TokenRange>,
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What for.
    pub operation: Operation,
    /// What is asked of whom.
    pub requests: BTreeMap<Address, Vec<Request>>,
    /// What is given to whom.
    pub gives: BTreeMap<Address, Vec<Give>>,
}

impl Plan {
    /// One that asks for and gives nothing.
    pub fn new(operation: Operation) -> Self {
        Self { operation, requests: BTreeMap::new(), gives: BTreeMap::new() }
    }

    /// The nodes that it is about.
    pub fn peers(&self) -> Vec<Address> {
        let mut peers: Vec<_> = self.requests.keys().chain(self.gives.keys()).copied().collect();
        peers.sort();
        peers.dedup();
        peers
    }
}
