//! What other nodes ask of this one, by verb.

use std::rc::{Rc, Weak};
use std::time::Duration;

use env::Class;
use internode::payload::write_schema;
use internode::{FailureReason, Params, Verb};
use messaging::{Messenger, Serve, Served};
use rows::codec::MutationEncoder;
use storage::Trace;
use types::Address;

use crate::coordinator::Coordinator;
use crate::replica::PeerRequest;

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
                let env = coordinator.env.clone();
                env.spawn(Class::Statement, async move {
                    let Served { from, header, payload, created_at, held, .. } = request;
                    let receive = move |first: &Rc<Coordinator>| {
                        if let Some(membership) = first.membership() {
                            membership.receive(from, header.verb, &payload, created_at);
                        }
                    };
                    let _ = coordinator.shards.call(0, receive).await;
                    // its share of memory is taken until the first shard is done with it
                    drop(held);
                });
            }
            // one that is about to stop is not up any more
            Verb::EchoReq if coordinator.env.is_terminated() => {}
            Verb::EchoReq | Verb::PingReq => messenger.answer(&request, Params::NONE, Vec::new()),
            _ => {
                let messenger = Rc::clone(messenger);
                let env = coordinator.env.clone();
                // nobody waits for a hint: statements go first
                let class = match request.header.verb {
                    Verb::HintReq => Class::Streaming,
                    _ => Class::Statement,
                };
                env.spawn(class, async move {
                    if matches!(request.header.verb, Verb::MutationReq) {
                        messenger.forward(&request);
                    }
                    let traced = coordinator.tracer.begin_of_peer(&request);
                    match coordinator.serve_message(&request, traced.trace()).await {
                        Ok(Some((payload, params))) => {
                            traced.answers(&coordinator.env, &request);
                            messenger.answer(&request, params, payload);
                        }
                        Ok(None) => {}
                        Err(reason) => messenger.fail(&request, reason),
                    }
                    if traced.trace().is_on() {
                        Box::pin(coordinator.tracer.end_of_peer(traced)).await;
                    }
                });
            }
        }
    }

    fn knows(&self, node: Address) -> bool {
        let ring = self.0.upgrade().and_then(|coordinator| coordinator.peers.ring());
        ring.is_some_and(|ring| ring.find(node).is_some())
    }

    fn compresses(&self, to: Address) -> bool {
        self.0.upgrade().is_some_and(|coordinator| coordinator.peers.compresses(to))
    }

    fn encrypts(&self, with: Address) -> bool {
        self.0.upgrade().is_none_or(|coordinator| coordinator.peers.encrypts(with))
    }

    fn note(&self, message: String) {
        if let Some(coordinator) = self.0.upgrade() {
            coordinator.peers.note(message);
        }
    }
}

/// A payload and what its message says besides; none where nothing is answered.
type Answered = Option<(Vec<u8>, Params)>;

impl Coordinator {
    async fn serve_message(
        self: &Rc<Self>,
        request: &Served,
        trace: &Trace,
    ) -> Result<Answered, FailureReason> {
        let header = &request.header;
        match header.verb {
            Verb::SchemaVersionReq => Ok(Some((self.schema().version().to_vec(), Params::NONE))),
            Verb::SchemaPullReq => {
                let mutations = self.schema_to_send().await.map_err(|error| {
                    self.peers.note(format!("the schema cannot be sent: {error}"));
                    FailureReason::Unknown
                })?;
                let mut payload = Vec::new();
                let written = write_schema(&mutations, &mut MutationEncoder::new(), &mut payload);
                written.map_err(|_| FailureReason::Unknown)?;
                Ok(Some((payload, Params::NONE)))
            }
            Verb::SchemaPushReq => {
                let merged = match self.read_schema(&request.payload) {
                    Ok(mutations) => {
                        self.merge_schema(mutations).await.map_err(|error| error.to_string())
                    }
                    Err(error) => Err(error),
                };
                if let Err(why) = merged {
                    let from = request.from;
                    self.peers
                        .note(format!("a change of the schema by /{from} is not merged: {why}"));
                }
                Ok(None)
            }
            verb => {
                let now = self.shard.unix_millis();
                let left = u64::try_from(request.expires_at - now).unwrap_or_default();
                let request = PeerRequest {
                    from: request.from,
                    verb,
                    params: &header.params,
                    flags: header.flags,
                    payload: &request.payload,
                    deadline: self.env.now() + Duration::from_millis(left),
                    trace,
                };
                let answer = self.serve_peer(request).await?;
                Ok(answer.map(|answer| (answer.payload, answer.params)))
            }
        }
    }
}
