//! Connections that others opened and that are open, by address: nobody has too many.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use metrics::Gauge;

/// Connections of one address that a shard has open.
pub(crate) const PER_IP_MAX: usize = 256;

/// Connections that are open, by address.
#[derive(Debug)]
pub(crate) struct Open {
    by_ip: RefCell<BTreeMap<IpAddr, usize>>,
    /// How many, for the metrics.
    all: Gauge,
}

/// One of them, as long as it is open.
#[derive(Debug)]
pub(crate) struct Entered {
    open: Rc<Open>,
    ip: IpAddr,
}

impl Open {
    pub fn new(all: &Gauge) -> Rc<Self> {
        Rc::new(Self { by_ip: RefCell::default(), all: all.clone() })
    }

    /// One more; none where the address has as many as it may have.
    pub fn enter(self: &Rc<Self>, ip: IpAddr) -> Option<Entered> {
        let mut by_ip = self.by_ip.borrow_mut();
        let count = by_ip.entry(ip).or_default();
        if *count >= PER_IP_MAX {
            return None;
        }
        *count += 1;
        self.all.add(1);
        Some(Entered { open: Rc::clone(self), ip })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.open.all.add(-1);
        let mut by_ip = self.open.by_ip.borrow_mut();
        if let Some(count) = by_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                by_ip.remove(&self.ip);
            }
        }
    }
}
