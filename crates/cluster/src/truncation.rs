//! TRUNCATE over a ring: every node empties the table by itself.
//!
//! All nodes must be up.

use std::rc::Rc;
use std::sync::Arc;

use internode::payload::Truncate;
use internode::{Params, Verb};
use messaging::Failed;
use protocol::{Consistency, ErrorResponse};
use schema::Table;

use crate::answer::{Answer, Outcome, cql_error, server_error};
use crate::peers::Peers;
use crate::schema_owner::{SchemaOwner, truncate_error};
use crate::shard_context::{STATEMENT, ShardContext};

/// TRUNCATE on all nodes.
pub(crate) struct Truncation {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    schema: Rc<SchemaOwner>,
}

impl Truncation {
    pub fn new(shard: &Rc<ShardContext>, peers: &Rc<Peers>, schema: &Rc<SchemaOwner>) -> Self {
        Self { shard: Rc::clone(shard), peers: Rc::clone(peers), schema: Rc::clone(schema) }
    }

    /// TRUNCATE as a client asks for it: on all nodes, all of which have to be up
    /// (`StorageProxy.truncateBlocking`).
    pub async fn everywhere(&self, table: &Arc<Table>) -> Outcome {
        let schema = self.shard.schema();
        let scope =
            match schema.keyspace(&table.keyspace).map(|keyspace| self.peers.scope(keyspace)) {
                Some(Ok(Some(scope))) => scope,
                Some(Err(error)) => return error.into(),
                None | Some(Ok(None)) => return self.schema.truncate(table).await,
            };
        if let Err(error) = cql::ddl::check_truncate(table).map_err(cql_error) {
            return error.into();
        }
        let ring = &scope.ring;
        let (all, alive) = (
            ring.members().len() as i32,
            ring.members().iter().filter(|node| ring.is_up(**node)).count() as i32,
        );
        if alive < all {
            return ErrorResponse::unavailable(Consistency::All, all, alive).into();
        }
        let of = Truncate { keyspace: table.keyspace.clone(), table: table.name.clone() };
        let mut payload = Vec::new();
        if let Err(error) = of.write(&mut payload) {
            return server_error(error).into();
        }
        let (payload, mut asked) = (Arc::<[u8]>::from(payload), Vec::new());
        for node in ring.members().iter().filter(|node| **node != ring.local()) {
            let Some(messenger) = self.peers.messenger().cloned() else { continue };
            let (to, payload) = (ring.node(*node).address, Arc::clone(&payload));
            asked.push((
                to,
                self.shard.env.spawn_task(STATEMENT, async move {
                    messenger.request(to, Verb::TruncateReq, Params::NONE, &payload).await
                }),
            ));
        }
        let here = self.schema.truncate(table).await;
        let mut answered = i32::from(here.result.is_ok());
        let mut failed = here.result.err();
        for (node, answer) in asked {
            match answer.await {
                Ok(_) => answered += 1,
                Err(Failed::Replica(_)) => {
                    failed = failed.or_else(|| {
                        Some(truncate_error(format!("Truncate failed on replica /{node}")))
                    });
                }
                Err(_) => {}
            }
        }
        match failed {
            Some(error) => error.into(),
            None if answered < all => {
                truncate_error(format!("Truncate timed out - received only {answered} responses"))
                    .into()
            }
            None => Outcome::new(Ok(Answer::Void), Vec::new()),
        }
    }
}
