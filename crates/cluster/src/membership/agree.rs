//! One schema for the ring: what gossip says of versions goes to [`Agreement`], and what that asks
//! for to other nodes.

use std::rc::Rc;
use std::time::Duration;

use gossip::{AppState, EndpointState, Status};
use internode::payload::{read_schema, write_schema};
use internode::{Params, Verb};
use metrics::Level;
use rows::Mutation;
use rows::codec::{MutationDecoder, MutationEncoder};
use schema::{Schema, TableId};
use types::{Address, Reader, Uuid};

use super::Membership;
use crate::schema_ring::{Agreement, Effect, Event, News, Origin, Pull, Said};

/// How long a start waits for the schema of the ring (`cassandra.schema_delay_ms`).
const SCHEMA_PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks whether it is there.
const SCHEMA_STEP: Duration = Duration::from_millis(100);

/// What a node says that an agreement is about.
fn said(state: &EndpointState) -> Said {
    let text = |kind| state.get(kind).unwrap_or_default();
    let status = state.status();
    let owns = !matches!(status, Status::None | Status::Boot | Status::BootReplace(_));
    Said {
        schema: Uuid::parse(text(AppState::SCHEMA)).map(Uuid::to_bytes),
        release: text(AppState::RELEASE_VERSION).to_owned(),
        messaging: text(AppState::NET_VERSION).parse().ok(),
        is_member: owns && !status.is_dead(),
    }
}

impl Membership {
    /// Begins to agree with the others, and watches what changes here.
    pub(super) fn start_agreeing(self: &Rc<Self>) {
        let release = self.shard.identity.release;
        let agreement = Agreement::new(self.millis(), release, internode::VERSION_40);
        *self.agreement.borrow_mut() = Some(agreement);
        let membership = Rc::downgrade(self);
        self.owner.watch(move |news| {
            if let Some(membership) = membership.upgrade() {
                membership.schema_changed(&news);
            }
        });
        self.agree(Event::Local(self.shard.schema().version()));
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.env.now().since(env::Instant::ZERO).as_millis()).unwrap_or(u64::MAX)
    }

    fn schema_changed(self: &Rc<Self>, news: &News) {
        if news.origin == Origin::Here {
            *self.news.borrow_mut() = news.mutations.clone();
            self.agree(Event::Changed);
            self.news.borrow_mut().clear();
        }
        self.agree(Event::Local(news.version));
    }

    /// What a node says of itself may be something else now.
    pub(super) fn heard_of(self: &Rc<Self>, node: Address) {
        let said = self.gossiper.borrow().peer(node).map(|peer| said(&peer.state));
        if let Some(said) = said {
            self.agree(Event::Heard(node, said));
        }
    }

    /// Takes a step of the agreement, and does what follows from it.
    pub(super) fn agree(self: &Rc<Self>, event: Event) {
        let now = self.millis();
        let effects = match &mut *self.agreement.borrow_mut() {
            Some(agreement) => agreement.step(now, event),
            None => return,
        };
        for effect in effects {
            match effect {
                Effect::Pull(pull) => {
                    let membership = Rc::clone(self);
                    self.env.spawn(env::Class::Background, async move {
                        let is_done = membership.pull(pull).await;
                        membership.agree(Event::Ended { pull, is_done });
                    });
                }
                Effect::Push(nodes) => self.push(&nodes),
                Effect::Announce(_) => self.publish_schema(),
            }
        }
    }

    fn push(self: &Rc<Self>, nodes: &[Address]) {
        let mut payload = Vec::new();
        let written = write_schema(&self.news.borrow(), &mut MutationEncoder::new(), &mut payload);
        if let Err(error) = written {
            let text = format!(
                "cannot send a schema change to other nodes; compare schema versions with nodetool \
                 describecluster: {error}"
            );
            return self.note(Level::Error, text);
        }
        let payload = payload.into();
        self.env.mark("schema.pushed");
        for node in nodes {
            self.messenger.send(*node, Verb::SchemaPushReq, &payload);
        }
    }

    /// Asks a node for its schema, and merges it. Is it merged, or not wanted any more?
    async fn pull(&self, pull: Pull) -> bool {
        let answer =
            self.messenger.request(pull.node, Verb::SchemaPullReq, Params::NONE, &[].into()).await;
        let wants =
            |agreement: &Option<Agreement>| agreement.as_ref().is_some_and(|a| a.wants(&pull));
        let Ok(answer) = answer else { return false };
        if !wants(&self.agreement.borrow()) {
            return true;
        }
        let merged = match read_mutations(&self.shard.schema(), &answer.payload) {
            Ok(mutations) => self.owner.merge(mutations).await.map_err(|e| e.to_string()),
            Err(error) => Err(error),
        };
        self.env.mark("schema.pulled");
        if let Err(why) = &merged {
            let text = format!(
                "cannot merge the schema of /{}; compare schema versions with nodetool \
                 describecluster: {why}",
                pull.node
            );
            self.note(Level::Error, text);
        }
        merged.is_ok()
    }

    /// Waits until this node has the schema of each other, but not for ever: whose it has not. Who
    /// is dead, and whose place this node takes, does not count: it said what was so when it died.
    pub(super) async fn wait_for_schema(&self, dead: Option<Address>) -> Vec<Address> {
        let until = self.env.now() + SCHEMA_PATIENCE;
        let is_ready = || {
            let agreement = self.agreement.borrow();
            agreement.as_ref().is_none_or(|agreement| agreement.is_ready_without(dead))
        };
        while !is_ready() && self.env.now() < until {
            self.env.sleep(SCHEMA_STEP).await;
        }
        let own = self.shard.schema().version();
        let agreement = self.agreement.borrow();
        let others = agreement.iter().flat_map(Agreement::said);
        let others = others.filter(|(version, _)| *version != own);
        let behind = others.flat_map(|(_, nodes)| nodes.clone());
        if is_ready() { Vec::new() } else { behind.filter(|node| Some(*node) != dead).collect() }
    }
}

/// Reads mutations of a schema.
pub(super) fn read_mutations(schema: &Schema, payload: &[u8]) -> Result<Vec<Mutation>, String> {
    let layout_of = |id: &[u8; 16]| {
        schema.table_by_id(&TableId(*id)).map(|table| std::sync::Arc::clone(&table.layout))
    };
    let mut reader = Reader::new(payload);
    let read = read_schema(&mut reader, &mut MutationDecoder::new(), &layout_of);
    let read = read.map_err(|error| error.to_string())?;
    reader.finish().map(|()| read).map_err(|error| error.to_string())
}
