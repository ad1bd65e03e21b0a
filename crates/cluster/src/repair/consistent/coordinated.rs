//! The incremental repairs that this node coordinates (`CoordinatorSession`).

use std::collections::BTreeSet;
use std::rc::Rc;

use env::Class;
use internode::Verb;
use metrics::Level;
use repair::wire::{
    FailSession, FinalizeCommit, FinalizePropose, PrepareConsistentRequest, SessionState,
};
use types::{Address, Uuid};

use super::session::LocalSession;
use super::sessions::LocalSessions;
use crate::peers::Peers;
use crate::repair::asks::Asks;
use crate::repair::replies::Replies;
use crate::shard_context::ShardContext;

/// How often it is looked whether this node has set apart what is to be repaired.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

/// Coordinates them; on the first shard.
pub(in crate::repair) struct Coordinated {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    sessions: Rc<LocalSessions>,
    asks: Rc<Asks>,
    replies: Rc<Replies>,
}

impl Coordinated {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        sessions: &Rc<LocalSessions>,
        asks: &Rc<Asks>,
        replies: &Rc<Replies>,
    ) -> Rc<Self> {
        let told = Rc::downgrade(replies);
        sessions.watch_failures(move |id| {
            if let Some(replies) = told.upgrade() {
                replies.failed(id);
            }
        });
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            sessions: Rc::clone(sessions),
            asks: Rc::clone(asks),
            replies: Rc::clone(replies),
        })
    }

    /// Has all nodes set apart what is to be repaired: `others` beside this one.
    ///
    /// # Errors
    /// Why one of them cannot.
    pub async fn prepare(
        &self,
        session: LocalSession,
        others: &BTreeSet<Address>,
    ) -> Result<(), String> {
        let id = session.id;
        self.peers.note(
            Level::Info,
            format!("Beginning prepare phase of incremental repair session {id}"),
        );
        let mut payload = Vec::new();
        let request = PrepareConsistentRequest {
            session: id,
            coordinator: session.coordinator,
            participants: session.participants.iter().copied().collect(),
        };
        request.write(&mut payload).map_err(|error| error.to_string())?;
        self.sessions.begin(session);
        let prepared = self.ask_all(id, others, Verb::PrepareConsistentReq, &payload).await;
        prepared.map_err(|why| format!("Incremental repair session {id} has failed: {why}"))?;
        // this node too
        loop {
            let state = self.sessions.get(id).map(|session| session.state);
            match state {
                Some(SessionState::Preparing) => self.shard.env.sleep(LOOK).await,
                Some(SessionState::Prepared | SessionState::Repairing) => return Ok(()),
                _ => return Err(format!("Incremental repair session {id} has failed")),
            }
        }
    }

    /// Sends a message to nodes, each of which answers later.
    async fn ask_all(
        &self,
        id: Uuid,
        nodes: &BTreeSet<Address>,
        verb: Verb,
        payload: &[u8],
    ) -> Result<(), String> {
        let mut tasks = Vec::new();
        for node in nodes.iter().copied() {
            let heard = self.replies.expect_phase(id, node);
            let (asks, replies) = (Rc::clone(&self.asks), Rc::clone(&self.replies));
            let payload = payload.to_vec();
            tasks.push(self.shard.env.spawn_task(Class::Streaming, async move {
                asks.ask(node, verb, payload).await?;
                match replies.wait(heard, &[node]).await? {
                    true => Ok(()),
                    false => Err(format!("/{node} refused it: its log says why")),
                }
            }));
        }
        let mut failed = None;
        for task in tasks {
            if let Err(why) = task.await {
                failed = failed.or(Some(why));
            }
        }
        self.replies.forget_phase(id);
        failed.map_or(Ok(()), Err)
    }

    /// Has all nodes count as repaired what was set apart.
    ///
    /// # Errors
    /// Why one of them will not. Then nothing is repaired.
    pub async fn finalize(&self, id: Uuid, others: &BTreeSet<Address>) -> Result<(), String> {
        self.peers.note(Level::Info, format!("Proposing finalization of repair session {id}"));
        let mut payload = Vec::new();
        FinalizePropose { session: id }.write(&mut payload);
        let failed = |why| format!("Incremental repair session {id} has failed: {why}");
        self.ask_all(id, others, Verb::FinalizeProposeMsg, &payload).await.map_err(failed)?;
        self.sessions.set_repairing(id).await.map_err(failed)?;
        self.sessions.promise(id).await.map_err(failed)?;
        // who did not hear of it asks this node, which knows it from here on
        self.sessions.commit(id).await.map_err(failed)?;
        self.peers.note(Level::Info, format!("Committing finalization of repair session {id}"));
        let mut payload = Vec::new();
        FinalizeCommit { session: id }.write(&mut payload);
        let mut tasks = Vec::new();
        for node in others.iter().copied() {
            let (asks, payload) = (Rc::clone(&self.asks), payload.clone());
            let ask = async move { asks.ask(node, Verb::FinalizeCommitMsg, payload).await };
            tasks.push((node, self.shard.env.spawn_task(Class::Streaming, ask)));
        }
        for (node, task) in tasks {
            if let Err(why) = task.await {
                let text = format!(
                    "[repair #{id}] /{node} was not told that it succeeded ({why}): it asks for \
                     that by itself"
                );
                self.peers.note(Level::Warn, text);
            }
        }
        Ok(())
    }

    /// Ends a session as failed, everywhere. False if it may have succeeded: the disk did not take
    /// that, and says it or not after the next start.
    pub async fn fail(&self, id: Uuid, others: &BTreeSet<Address>) -> bool {
        self.sessions.fail(id, false).await;
        let session = self.sessions.get(id);
        if session.is_some_and(|session| session.state == SessionState::Finalized) {
            return false;
        }
        let mut payload = Vec::new();
        FailSession { session: id }.write(&mut payload);
        for node in others.iter().copied() {
            let (asks, payload) = (Rc::clone(&self.asks), payload.clone());
            self.shard.env.spawn(Class::Streaming, async move {
                let _ = asks.ask(node, Verb::FailedSessionMsg, payload).await;
            });
        }
        true
    }
}
