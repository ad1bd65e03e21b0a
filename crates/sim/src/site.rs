//! A node as worlds handle it, whatever it is made of.

use std::net::IpAddr;
use std::rc::Rc;

use env::Env;
use env::sim::{NodeId, World};

use crate::failed::Failed;
use crate::plan::Plan;
use crate::target::Target;

/// A node over all its lives: how it starts, and the way in.
pub trait Site: Target + Sized + 'static {
    /// A node that will have this address; `clients` is where its clients are.
    fn new(plan: &Plan, clients: &Env, address: IpAddr) -> Rc<Self>;

    /// Starts it for the first time.
    fn start(self: &Rc<Self>, world: &World, node: NodeId, shards: usize);

    /// Does it take requests?
    fn is_serving(&self) -> bool;

    /// Makes what the clients need, once, when it serves for the first time.
    async fn prepare(&self) -> Result<(), Failed>;

    /// The node is gone.
    fn closed(&self);

    /// Why background work failed, if it did.
    fn failure(&self) -> Option<String>;
}
