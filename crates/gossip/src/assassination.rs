//! A node that an operator has taken out of the ring.

use types::{Address, Token};

use crate::endpoint::HeartBeat;

/// A node that is to be taken out of the ring, if it gives no sign of life meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assassination {
    pub node: Address,
    pub token: Token,
    /// What was known of it when this began.
    pub heartbeat: HeartBeat,
    /// When this began, in nanoseconds.
    pub since: u64,
}
