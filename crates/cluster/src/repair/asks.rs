//! Sends messages of repairs, again where no answer comes (`RepairMessage`).

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use internode::{Params, Verb};
use messaging::Failed;
use types::Address;

use super::life::Life;
use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// How often a message is sent in all. Who gets one twice knows that.
const TRIES: u32 = 3;
/// How long to wait before it is sent again.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends them; on the first shard.
pub(super) struct Asks {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    life: Rc<Life>,
}

impl Asks {
    pub fn new((shard, peers): (&Rc<ShardContext>, &Rc<Peers>), life: &Rc<Life>) -> Rc<Self> {
        let (shard, peers) = (Rc::clone(shard), Rc::clone(peers));
        Rc::new(Self { shard, peers, life: Rc::clone(life) })
    }

    /// Sends a message until it is heard.
    ///
    /// # Errors
    /// If the other node refuses it, does not answer in time, or dies.
    pub async fn ask(&self, to: Address, verb: Verb, payload: Vec<u8>) -> Result<(), String> {
        let messenger = self.peers.messenger().ok_or("this node is in no ring")?;
        let payload: Arc<[u8]> = payload.into();
        let mut tries = 1;
        loop {
            let answer = Box::pin(messenger.request(to, verb, Params::NONE, &payload));
            match self.life.while_alive(&[to], answer).await? {
                Ok(_) => return Ok(()),
                Err(Failed::Replica(_)) => return Err(format!("/{to} refused {}", verb.name())),
                Err(Failed::NotSent) => {
                    return Err(format!("{} cannot be sent to /{to}", verb.name()));
                }
                Err(Failed::Timeout) if tries == TRIES => {
                    return Err(format!("/{to} did not answer {} in time", verb.name()));
                }
                Err(Failed::Timeout) => tries += 1,
            }
            self.shard.env.sleep(PAUSE).await;
        }
    }
}
