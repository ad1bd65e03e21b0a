//! What other nodes ask of this one, by verb.

use std::rc::{Rc, Weak};
use std::time::Duration;

use env::Class;
use internode::{FailureReason, Params, Verb};
use messaging::{Messenger, Serve, Served};
use types::Address;

use crate::coordinator::Coordinator;

/// Serves other nodes on one shard.
pub(crate) struct PeerServer(pub Weak<Coordinator>);

impl Serve for PeerServer {
    fn serve(&self, messenger: &Rc<Messenger>, request: Served) {
        let Some(coordinator) = self.0.upgrade() else { return };
        match request.header.verb {
            Verb::GossipDigestSyn
            | Verb::GossipDigestAck
            | Verb::GossipDigestAck2
            | Verb::GossipShutdown => {
                let (from, verb) = (request.from, request.header.verb);
                let (payload, created) = (request.payload, request.created_at);
                coordinator.shards.send(0, move |first: &Rc<Coordinator>| {
                    if let Some(membership) = first.membership() {
                        membership.receive(from, verb, &payload, created);
                    }
                });
            }
            Verb::EchoReq => {
                if !coordinator.env.is_terminated() {
                    messenger.answer(&request, Params::NONE, Vec::new());
                }
            }
            Verb::PingReq => messenger.answer(&request, Params::NONE, Vec::new()),
            _ => {
                let messenger = Rc::clone(messenger);
                let env = coordinator.env.clone();
                env.spawn(Class::Statement, async move {
                    let now = coordinator.env.unix_micros() / 1000;
                    let left = u64::try_from(request.expires_at - now).unwrap_or_default();
                    let deadline = coordinator.env.now() + Duration::from_millis(left);
                    match coordinator.serve_peer(&request, deadline).await {
                        Ok(payload) => messenger.answer(&request, Params::NONE, payload),
                        Err(reason) => messenger.fail(&request, reason),
                    }
                });
            }
        }
    }

    fn compresses(&self, to: Address) -> bool {
        self.0.upgrade().is_some_and(|coordinator| coordinator.compresses(to))
    }

    fn note(&self, message: String) {
        if let Some(coordinator) = self.0.upgrade() {
            coordinator.note(message);
        }
    }
}

impl Coordinator {
    /// What another node asks of this one as a replica.
    async fn serve_peer(
        self: &Rc<Self>,
        request: &Served,
        _deadline: env::Instant,
    ) -> Result<Vec<u8>, FailureReason> {
        let _ = request;
        Err(FailureReason::Unknown)
    }
}
