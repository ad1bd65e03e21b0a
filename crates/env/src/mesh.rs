//! Messages between the shards of one node: a ring for each ordered pair, filled once per turn.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crate::env::{Env, Make, MeshHooks, Shard};
use crate::stats::bump;
use crate::sync::Notify;

/// One shard's end of the mesh. `send` appends to an outbox, which leaves in one batch at the end
/// of the turn; messages of one shard to another arrive in order.
pub struct Mesh<M>(Rc<Inner<M>>);

impl<M> Clone for Mesh<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

pub(crate) struct Inner<M> {
    me: usize,
    outboxes: Vec<RefCell<VecDeque<M>>>,
    /// Messages in the outboxes.
    unsent: Cell<usize>,
    inbox: RefCell<VecDeque<(usize, M)>>,
    arrived: Notify,
    link: Link<M>,
    shard: std::rc::Weak<Shard>,
}

enum Link<M> {
    Real { to: Vec<Option<RefCell<Sender<M>>>>, from: Vec<Option<RefCell<Receiver<M>>>> },
    Sim(SimLinks<M>),
}

/// The shards' ends of the mesh of one life of a simulated node.
pub(crate) struct SimLinks<M> {
    ends: Rc<RefCell<Vec<Option<std::rc::Weak<Inner<M>>>>>>,
    /// When the last batch from one shard to another arrives: they stay in order.
    last: Rc<RefCell<BTreeMap<(usize, usize), u64>>>,
}

impl<M> Clone for SimLinks<M> {
    fn clone(&self) -> Self {
        Self { ends: self.ends.clone(), last: self.last.clone() }
    }
}

impl<M> SimLinks<M> {
    pub fn new(shards: usize) -> Self {
        let ends = (0..shards).map(|_| None).collect();
        Self { ends: Rc::new(RefCell::new(ends)), last: Rc::default() }
    }
}

/// Set by a sender whose messages did not all fit; the receiver that makes room then wakes it.
type Starved = Arc<AtomicBool>;

struct Sender<M> {
    ring: rtrb::Producer<M>,
    starved: Starved,
}

struct Receiver<M> {
    ring: rtrb::Consumer<M>,
    starved: Starved,
}

/// The ends of one shard's rings, made before its thread starts.
pub(crate) struct RealLink<M> {
    to: Vec<Option<RefCell<Sender<M>>>>,
    from: Vec<Option<RefCell<Receiver<M>>>>,
}

/// A ring for each ordered pair of different shards.
pub(crate) fn real_links<M>(shards: usize, entries: usize) -> Vec<RealLink<M>> {
    let none = || RealLink {
        to: (0..shards).map(|_| None).collect(),
        from: (0..shards).map(|_| None).collect(),
    };
    let mut links: Vec<RealLink<M>> = (0..shards).map(|_| none()).collect();
    for from in 0..shards {
        for to in (0..shards).filter(|&to| to != from) {
            let (producer, consumer) = rtrb::RingBuffer::new(entries.max(1));
            let starved = Starved::default();
            let sender = Sender { ring: producer, starved: starved.clone() };
            links[from].to[to] = Some(RefCell::new(sender));
            links[to].from[from] = Some(RefCell::new(Receiver { ring: consumer, starved }));
        }
    }
    links
}

impl<M: 'static> Mesh<M> {
    pub(crate) fn real(env: &Env, link: RealLink<M>) -> Self {
        Self::with_link(env, Link::Real { to: link.to, from: link.from })
    }

    pub(crate) fn sim(env: &Env, links: SimLinks<M>) -> Self {
        let mesh = Self::with_link(env, Link::Sim(links.clone()));
        if let Some(end) = links.ends.borrow_mut().get_mut(env.shard()) {
            *end = Some(Rc::downgrade(&mesh.0));
        }
        mesh
    }

    fn with_link(env: &Env, link: Link<M>) -> Self {
        let inner = Rc::new(Inner {
            me: env.shard(),
            outboxes: (0..env.shards()).map(|_| RefCell::default()).collect(),
            unsent: Cell::new(0),
            inbox: RefCell::default(),
            arrived: Notify::new(),
            link,
            shard: Rc::downgrade(&env.0),
        });
        let (flush, work, poll) = (inner.clone(), inner.clone(), inner.clone());
        let hooks = MeshHooks {
            flush: Box::new(move || flush.flush()),
            has_work: Box::new(move || work.has_work()),
        };
        let _ = env.0.mesh.set(hooks);
        // The executor drops its hooks when it closes.
        std::mem::forget(env.0.exec.at_turn_start(move || poll.take_arrivals()));
        Self(inner)
    }

    /// Sends a message to a shard, this one included. It leaves at the end of the turn.
    ///
    /// # Panics
    /// If there is no shard `to`: a bug in the token mapping, not something a peer can cause.
    pub fn send(&self, to: usize, message: M) {
        let inner = &self.0;
        assert!(to < inner.outboxes.len(), "no shard {to}");
        inner.outboxes[to].borrow_mut().push_back(message);
        inner.unsent.set(inner.unsent.get() + 1);
        if let Some(shard) = inner.shard.upgrade() {
            bump(&shard.counters.mesh_sent, 1);
        }
    }

    /// The next message and the shard that sent it. Any task may receive; usually one does.
    pub async fn recv(&self) -> (usize, M) {
        loop {
            if let Some(message) = self.try_recv() {
                if !self.0.inbox.borrow().is_empty() {
                    self.0.arrived.notify_one();
                }
                return message;
            }
            self.0.arrived.notified().await;
        }
    }

    /// A message that has arrived, if any.
    pub fn try_recv(&self) -> Option<(usize, M)> {
        self.0.inbox.borrow_mut().pop_front()
    }

    /// Messages that wait in this shard's outboxes, because the turn has not ended or the ring to
    /// their shard is full.
    pub fn unsent(&self) -> usize {
        self.0.unsent.get()
    }
}

impl<M: 'static> Inner<M> {
    fn arrived(&self, n: usize) {
        if n > 0 {
            if let Some(shard) = self.shard.upgrade() {
                bump(&shard.counters.mesh_received, n as u64);
            }
            self.arrived.notify_one();
        }
    }

    fn take_arrivals(&self) {
        let Link::Real { from, .. } = &self.link else { return };
        let mut inbox = self.inbox.borrow_mut();
        let before = inbox.len();
        for (shard, ring) in from.iter().enumerate() {
            let Some(mut end) = ring.as_ref().map(RefCell::borrow_mut) else { continue };
            let n = end.ring.slots();
            if n == 0 {
                continue;
            }
            if let Ok(chunk) = end.ring.read_chunk(n) {
                inbox.extend(chunk.into_iter().map(|message| (shard, message)));
            }
            // Against the sender's fence before its sleep: one of the two sees the other.
            fence(Ordering::SeqCst);
            if end.starved.load(Ordering::Relaxed)
                && end.starved.swap(false, Ordering::AcqRel)
                && let Some(me) = self.shard.upgrade()
            {
                me.node.remotes[shard].wake();
            }
        }
        let n = inbox.len() - before;
        drop(inbox);
        self.arrived(n);
    }

    fn has_work(&self) -> bool {
        let Link::Real { from, to } = &self.link else { return false };
        from.iter().flatten().any(|end| !end.borrow().ring.is_empty())
            || (self.unsent.get() > 0
                && self.outboxes.iter().zip(to).any(|(outbox, end)| {
                    let room = end.as_ref().is_none_or(|end| !end.borrow().ring.is_full());
                    room && !outbox.borrow().is_empty()
                }))
    }

    fn flush(&self) {
        if self.unsent.get() == 0 {
            return;
        }
        let Some(shard) = self.shard.upgrade() else { return };
        let mut left = 0;
        for (to, outbox) in self.outboxes.iter().enumerate() {
            let mut outbox = outbox.borrow_mut();
            if outbox.is_empty() {
                continue;
            }
            if to == self.me {
                let n = outbox.len();
                self.inbox.borrow_mut().extend(outbox.drain(..).map(|message| (self.me, message)));
                drop(outbox);
                self.arrived(n);
                continue;
            }
            left += self.flush_to(&shard, to, &mut outbox);
        }
        self.unsent.set(left);
    }

    fn flush_to(&self, shard: &Shard, to: usize, outbox: &mut VecDeque<M>) -> usize {
        let rings = match &self.link {
            Link::Real { to, .. } => to,
            Link::Sim(links) => {
                self.flush_sim(shard, links, to, outbox);
                return 0;
            }
        };
        let Some(mut end) = rings[to].as_ref().map(RefCell::borrow_mut) else { return 0 };
        let n = end.ring.slots().min(outbox.len());
        if let (true, Ok(chunk)) = (n > 0, end.ring.write_chunk_uninit(n)) {
            chunk.fill_from_iter(outbox.drain(..n));
            if shard.wake_other(to) {
                bump(&shard.counters.wakes_sent, 1);
            }
        }
        if !outbox.is_empty() {
            bump(&shard.counters.mesh_spilled, outbox.len() as u64);
            end.starved.store(true, Ordering::Relaxed);
        }
        outbox.len()
    }
}

impl<M: 'static> Inner<M> {
    fn flush_sim(&self, shard: &Shard, links: &SimLinks<M>, to: usize, outbox: &mut VecDeque<M>) {
        let Make::Sim(port) = &shard.make else { return };
        let batch = std::mem::take(outbox);
        let me = self.me;
        let at = {
            let mut last = links.last.borrow_mut();
            let last = last.entry((me, to)).or_default();
            *last = (*last + 1).max(port.now_ns() + port.world.rng.between(500, 50_000));
            *last
        };
        let links = links.clone();
        port.world.at(at, port.owner(), move |_| {
            let end = links.ends.borrow().get(to).and_then(|end| end.as_ref()?.upgrade());
            if let Some(end) = end {
                let n = batch.len();
                end.inbox.borrow_mut().extend(batch.into_iter().map(|message| (me, message)));
                end.arrived(n);
            }
        });
    }
}

impl<M> std::fmt::Debug for Mesh<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mesh(shard {})", self.0.me)
    }
}
