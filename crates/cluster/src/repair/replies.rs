//! What other nodes are asked for by a repair that this node coordinates, and tell it later: trees,
//! and the ends of streams.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use env::sync::{OneshotReceiver, OneshotSender, oneshot};
use repair::tree::Tree;
use repair::wire::{JobDescription, SessionSummary, SyncResponse, ValidationResponse};
use types::{Address, Uuid};

use super::life::Life;

/// The trees of a node; none, if it failed.
type Trees = Option<Vec<Tree>>;
/// What was streamed; none, if that failed.
type Synced = Option<Vec<SessionSummary>>;

/// Those that are waited for; on the first shard.
pub(super) struct Replies {
    life: Rc<Life>,
    trees: RefCell<BTreeMap<(JobDescription, Address), OneshotSender<Trees>>>,
    syncs: RefCell<BTreeMap<(JobDescription, Address, Address), OneshotSender<Synced>>>,
    /// Steps of incremental repairs that nodes are to take.
    phases: RefCell<BTreeMap<(Uuid, Address), OneshotSender<bool>>>,
}

impl Replies {
    pub fn new(life: &Rc<Life>) -> Rc<Self> {
        Rc::new(Self {
            life: Rc::clone(life),
            trees: RefCell::default(),
            syncs: RefCell::default(),
            phases: RefCell::default(),
        })
    }

    /// From now on the trees of a node are taken.
    pub fn expect_trees(&self, job: &JobDescription, from: Address) -> OneshotReceiver<Trees> {
        let (told, heard) = oneshot();
        self.trees.borrow_mut().insert((job.clone(), from), told);
        heard
    }

    /// The same of the end of streams between two.
    pub fn expect_sync(
        &self,
        job: &JobDescription,
        (source, destination): (Address, Address),
    ) -> OneshotReceiver<Synced> {
        let (told, heard) = oneshot();
        self.syncs.borrow_mut().insert((job.clone(), source, destination), told);
        heard
    }

    /// The same of a step of an incremental repair.
    pub fn expect_phase(&self, repair: Uuid, from: Address) -> OneshotReceiver<bool> {
        let (told, heard) = oneshot();
        self.phases.borrow_mut().insert((repair, from), told);
        heard
    }

    /// A node took it, or will not.
    pub fn phase(&self, repair: Uuid, from: Address, is_taken: bool) {
        if let Some(told) = self.phases.borrow_mut().remove(&(repair, from)) {
            let _ = told.send(is_taken);
        }
    }

    /// No step of an incremental repair is waited for any more.
    pub fn forget_phase(&self, repair: Uuid) {
        self.phases.borrow_mut().retain(|(of, _), _| *of != repair);
    }

    /// An incremental repair failed: nobody waits for anything of it.
    pub fn failed(&self, repair: Uuid) {
        self.forget_phase(repair);
        self.trees.borrow_mut().retain(|(of, _), _| of.parent != Some(repair));
        self.syncs.borrow_mut().retain(|(of, _, _), _| of.parent != Some(repair));
    }

    /// A node sent its trees. What nobody waits for is dropped.
    pub fn validated(&self, from: Address, of: ValidationResponse) {
        if let Some(told) = self.trees.borrow_mut().remove(&(of.desc, from)) {
            let _ = told.send(of.trees);
        }
    }

    /// A node says how streams ended: it is one of the two.
    pub fn synced(&self, from: Address, of: SyncResponse) {
        if from != of.source && from != of.destination {
            return;
        }
        let key = (of.desc, of.source, of.destination);
        if let Some(told) = self.syncs.borrow_mut().remove(&key) {
            let _ = told.send(of.is_success.then_some(of.summaries));
        }
    }

    /// Nothing of a job is waited for any more.
    pub fn forget(&self, job: &JobDescription) {
        self.trees.borrow_mut().retain(|(of, _), _| of != job);
        self.syncs.borrow_mut().retain(|(of, _, _), _| of != job);
    }

    /// Waits for what these nodes have to do.
    ///
    /// # Errors
    /// If one of them dies or starts again meanwhile.
    pub async fn wait<T>(&self, heard: OneshotReceiver<T>, nodes: &[Address]) -> Result<T, String> {
        let came = self.life.while_alive(nodes, heard).await?;
        came.map_err(|_| "the repair was ended".to_owned())
    }

    /// Is anything of a node waited for?
    pub fn is_expected(&self, from: Address) -> bool {
        self.trees.borrow().keys().any(|(_, node)| *node == from)
    }
}
