//! Memory that messages of each node may take, and of all nodes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use internode::quota::Quota;
use types::Address;

/// Reserves by node and of all.
#[derive(Debug)]
pub(crate) struct Quotas {
    endpoint_limit: u64,
    endpoints: RefCell<BTreeMap<Address, Quota>>,
    global: RefCell<Quota>,
}

impl Quotas {
    pub fn new(endpoint_limit: u64, global_limit: u64) -> Self {
        let global = RefCell::new(Quota::new(global_limit));
        Self { endpoint_limit, endpoints: RefCell::default(), global }
    }

    pub fn with<T>(&self, node: Address, f: impl FnOnce([&mut Quota; 2]) -> T) -> T {
        let mut endpoints = self.endpoints.borrow_mut();
        let endpoint = endpoints.entry(node).or_insert_with(|| Quota::new(self.endpoint_limit));
        let result = f([endpoint, &mut self.global.borrow_mut()]);
        if endpoint.used() == 0 {
            // whoever claims to be many nodes costs nothing
            endpoints.remove(&node);
        }
        result
    }
}
