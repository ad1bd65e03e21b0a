//! What other nodes ask of this one, by verb.

use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use env::Class;
use internode::payload::write_schema;
use internode::{FailureReason, Params, Verb};
use messaging::{Messenger, Serve, Served, StreamSocket};
use metrics::Level;
use rows::codec::MutationEncoder;
use storage::Trace;
use streaming::Streaming;
use types::Address;

use super::agree::read_mutations;
use crate::payload::first_table;
use crate::peer_request::PeerRequest;
use crate::peers::{Gossip, Peers};
use crate::replica::Replica;
use crate::schema_owner::SchemaOwner;
use crate::shard_context::ShardContext;
use crate::tracing::Tracer;

/// A payload and what its message says besides; none where nothing is answered.
type Answered = Option<(Vec<u8>, Params)>;

/// Serves other nodes on one shard.
#[derive(Clone)]
pub(crate) struct PeerServer {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    replica: Rc<Replica>,
    schema: Rc<SchemaOwner>,
    streaming: Rc<Streaming>,
    tracer: Rc<Tracer>,
}

impl PeerServer {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        replica: &Rc<Replica>,
        schema: &Rc<SchemaOwner>,
        streaming: &Rc<Streaming>,
        tracer: &Rc<Tracer>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            replica: Rc::clone(replica),
            schema: Rc::clone(schema),
            streaming: Rc::clone(streaming),
            tracer: Rc::clone(tracer),
        })
    }

    async fn serve_message(
        &self,
        request: &Served,
        trace: &Trace,
    ) -> Result<Answered, FailureReason> {
        let header = &request.header;
        match header.verb {
            Verb::ReplicationDoneReq => {
                let (from, verb) = (request.from, header.verb);
                let payload = Vec::new();
                let created_at = request.created_at;
                self.peers.hear(Gossip { from, verb, payload, created_at }).await;
                Ok(Some((Vec::new(), Params::NONE)))
            }
            Verb::SchemaVersionReq => {
                Ok(Some((self.shard.schema().version().to_vec(), Params::NONE)))
            }
            Verb::SchemaPullReq => {
                let mutations = self.schema.to_send().await.map_err(|error| {
                    let from = request.from;
                    let text = format!("cannot send /{from} the schema: {error}");
                    self.peers.note(Level::Error, text);
                    FailureReason::Unknown
                })?;
                let mut payload = Vec::new();
                let written = write_schema(&mutations, &mut MutationEncoder::new(), &mut payload);
                written.map_err(|_| FailureReason::Unknown)?;
                Ok(Some((payload, Params::NONE)))
            }
            Verb::SchemaPushReq => {
                let merged = match read_mutations(&self.shard.schema(), &request.payload) {
                    Ok(mutations) => {
                        self.schema.merge(mutations).await.map_err(|error| error.to_string())
                    }
                    Err(error) => Err(error),
                };
                if let Err(why) = merged {
                    let from = request.from;
                    let text = format!(
                        "cannot merge a schema change from /{from}; compare schema versions with \
                         nodetool describecluster: {why}"
                    );
                    self.peers.note(Level::Error, text);
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
                    deadline: self.shard.env.now() + Duration::from_millis(left),
                    trace,
                };
                let answer = self.replica.serve(request).await?;
                Ok(answer.map(|answer| (answer.payload, answer.params)))
            }
        }
    }
}

impl PeerServer {
    /// Takes what is gossip's to the first shard.
    fn hear(&self, request: Served) {
        let peers = Rc::clone(&self.peers);
        self.shard.env.spawn(Class::Statement, async move {
            let Served { from, header, payload, created_at, held, .. } = request;
            peers.hear(Gossip { from, verb: header.verb, payload, created_at }).await;
            // its share of memory is taken until the first shard is done with it
            drop(held);
        });
    }
}

impl Serve for PeerServer {
    /// A mutation counts at the table of its first update: mostly it has no other, and to read all
    /// of it is work that nobody waits for any more.
    fn dropped(&self, verb: Verb, payload: &[u8]) {
        let table = (verb == Verb::MutationReq).then(|| first_table(payload)).flatten();
        if let Some(Ok(store)) = table.map(|table| self.shard.engine.store(table)) {
            store.stats.dropped_mutations.set(store.stats.dropped_mutations.get() + 1);
        }
    }

    fn serve(&self, messenger: &Rc<Messenger>, request: Served) {
        match request.header.verb {
            Verb::GossipDigestSyn
            | Verb::GossipDigestAck
            | Verb::GossipDigestAck2
            | Verb::GossipShutdown => self.hear(request),
            // one that is about to stop is not up any more
            Verb::EchoReq if self.shard.env.is_terminated() => {}
            Verb::PingReq => messenger.answer(&request, Params::NONE, Vec::new()),
            Verb::EchoReq => {
                messenger.answer(&request, Params::NONE, Vec::new());
                self.hear(request);
            }
            _ => {
                let (this, messenger) = (self.clone(), Rc::clone(messenger));
                // nobody waits for a hint: statements go first
                let class = match request.header.verb {
                    Verb::HintReq => Class::Streaming,
                    _ => Class::Statement,
                };
                self.shard.env.spawn(class, async move {
                    if matches!(request.header.verb, Verb::MutationReq) {
                        messenger.forward(&request);
                    }
                    let traced = this.tracer.begin_of_peer(&request);
                    match this.serve_message(&request, traced.trace()).await {
                        Ok(Some((payload, params))) => {
                            traced.answers(&this.shard.env, &request);
                            messenger.answer(&request, params, payload);
                        }
                        Ok(None) => {}
                        Err(reason) => messenger.fail(&request, reason),
                    }
                    if traced.trace().is_on() {
                        Box::pin(this.tracer.end_of_peer(traced)).await;
                    }
                });
            }
        }
    }

    fn knows(&self, node: Address) -> bool {
        self.peers.ring().is_some_and(|ring| ring.find(node).is_some())
    }

    fn compresses(&self, to: Address) -> bool {
        self.peers.compresses(to)
    }

    fn encrypts(&self, with: Address) -> bool {
        self.peers.encrypts(with)
    }

    fn stream(&self, socket: StreamSocket) {
        self.streaming.serve(socket);
    }

    fn note_at(&self, at: &'static Location<'static>, level: Level, message: String) {
        self.peers.note_at(at, level, message);
    }
}
