//! What this node has given already (`system.transferred_ranges_v2`): what a decommission that
//! failed need not give again. It holds for one start, and for one operation: whoever gains a range
//! is written to only while others know that it does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use storage::{Engine, StorageError};
use types::{Address, TokenRange};

use crate::internal::{self, Internal, Times};
use crate::topology::available::{forget_all, range_bytes};

/// What is kept of it in the table's key (`StreamOperation.DECOMMISSION`).
const OPERATION: &[u8] = b"Unbootstrap";
const TABLE: &str = "transferred_ranges_v2";

/// Ranges that were given, by who got them and keyspace.
pub(super) struct Transferred {
    engine: Rc<Engine>,
    ranges: RefCell<BTreeMap<(Address, String), Vec<TokenRange>>>,
}

impl Transferred {
    pub fn new(engine: &Rc<Engine>) -> Self {
        Self { engine: Rc::clone(engine), ranges: RefCell::default() }
    }

    /// Those of a keyspace that a node got: normalized.
    pub fn of(&self, node: Address, keyspace: &str) -> Vec<TokenRange> {
        let ranges = self.ranges.borrow();
        ranges.get(&(node, keyspace.to_owned())).cloned().unwrap_or_default()
    }

    /// Forgets all, those of earlier starts too.
    pub async fn clear(&self) -> Result<(), StorageError> {
        self.ranges.borrow_mut().clear();
        forget_all(&self.engine, TABLE).await
    }

    /// A node got ranges of a keyspace, whole.
    pub async fn add(
        &self,
        node: Address,
        keyspace: &str,
        ranges: &[TokenRange],
    ) -> Result<(), StorageError> {
        if let Some(table) = self.engine.schema().table("system", TABLE) {
            let written = ranges.iter().map(|range| range_bytes(*range)).collect();
            let columns = [("ranges", Internal::Elements(written))];
            let times = Times::new(self.engine.env().unique_micros());
            let ip = match node.ip {
                IpAddr::V4(four) => four.octets().to_vec(),
                IpAddr::V6(six) => six.octets().to_vec(),
            };
            let port = i32::from(node.port).to_be_bytes();
            let key: [&[u8]; 2] = [OPERATION, keyspace.as_bytes()];
            let row = internal::insert(table, &key, &[&ip, &port], &columns, &times);
            internal::apply(&self.engine, row).await?;
        }
        let mut all = self.ranges.borrow_mut();
        let of = all.entry((node, keyspace.to_owned())).or_default();
        *of = TokenRange::normalize(of.iter().chain(ranges).copied());
        Ok(())
    }
}
