//! Streams of one shard: its components, made and joined together.

use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};

use env::Env;
use messaging::StreamSocket;
use metrics::{Level, Registry};
use storage::Engine;
use storage::shards::{Components, Remote};
use types::Address;

use crate::channels::{Channels, ControlAt, Listener};
use crate::host::Host;
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::measured::Measured;
use crate::only::Announced;
use crate::plan::Plan;
use crate::progress::SessionView;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::session::{Event, SessionId};
use crate::sessions::{OtherShards, Sessions};
use crate::settings::Settings;
use crate::states::PlanView;
use crate::wire::{FileHeader, Init};
use crate::wire_input::WireInput;

/// Streams of one shard.
pub struct Streaming {
    env: Env,
    channels: Rc<Channels>,
    ledger: Rc<Ledger>,
    sessions: Rc<Sessions>,
    /// Listens to the channels, which hold it by a weak handle.
    _listener: Rc<dyn Listener>,
}

impl Streaming {
    /// Makes a shard's components, and adds those that others reach.
    pub fn new(
        engine: &Rc<Engine>,
        components: &Components,
        host: Rc<dyn Host>,
        settings: Settings,
        registry: &Rc<Registry>,
    ) -> Rc<Self> {
        let channels = Channels::new(engine.env(), settings.keep_alive);
        let ledger = Ledger::new(engine.env(), &settings, registry);
        let sender = Sender::new(engine, &host, components.remote());
        let others = OtherShards { channels: components.remote(), senders: components.remote() };
        let sessions = Sessions::new((engine, &host), &settings, &ledger, &channels, others);
        let receiver = Receiver::new(engine, components.remote(), components.remote());
        let listener: Rc<dyn Listener> =
            Rc::new(Incoming { sessions: components.remote(), receiver, host });
        channels.listen(Rc::downgrade(&listener) as Weak<dyn Listener>);
        components.add(&channels);
        components.add(&ledger);
        components.add(&sender);
        components.add(&sessions);
        let env = engine.env().clone();
        Rc::new(Self { env, channels, ledger, sessions, _listener: listener })
    }

    /// Another node opened a connection for streams to this shard.
    pub fn serve(&self, socket: StreamSocket) {
        self.channels.open(socket, None);
    }

    /// Carries a plan out: one session with each node, all at the same time; on the first shard.
    /// What each session announced comes back.
    ///
    /// # Errors
    /// Of each session that failed: why. What the others brought stays.
    pub async fn run(
        &self,
        plan: Plan,
    ) -> Result<Vec<(Address, Announced)>, Vec<(Address, String)>> {
        self.sessions.run(plan).await
    }

    /// The sessions under way and the last ones that ended; on the first shard.
    pub fn sessions(&self) -> Vec<SessionView> {
        self.sessions.views()
    }

    /// What is remembered of plans, those that are over too; on the first shard.
    pub fn plans(&self) -> Vec<PlanView> {
        self.ledger.plans()
    }

    /// How fast files are sent; on the first shard.
    pub fn limits(&self) -> Limits {
        self.ledger.limits()
    }

    /// How fast files went the last time that there were any; on the first shard.
    pub fn measured(&self) -> Measured {
        self.ledger.measured()
    }

    /// Has files sent that fast, until the next start; on the first shard.
    pub fn set_limits(&self, limits: Limits) {
        self.ledger.set_limits(limits);
    }
}

impl std::fmt::Debug for Streaming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Streaming({:?})", self.env)
    }
}

/// What comes over a shard's connections.
struct Incoming {
    sessions: Remote<Sessions>,
    receiver: Receiver,
    host: Rc<dyn Host>,
}

impl Listener for Incoming {
    fn begin(
        &self,
        init: Init,
        control: ControlAt,
    ) -> Pin<Box<dyn Future<Output = Result<SessionId, String>> + '_>> {
        Box::pin(async move {
            let begun = self.sessions.call(0, move |first| first.follow(&init, control)).await;
            begun.map_err(|stopping| stopping.to_string())?
        })
    }

    fn event(&self, id: SessionId, event: Event) {
        self.sessions.send(0, move |first| first.event(id, event));
    }

    fn file<'a>(
        &'a self,
        header: FileHeader,
        input: &'a mut WireInput,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + 'a>> {
        Box::pin(self.receiver.receive(header, input))
    }

    fn refused(&self, with: Address, why: &str) {
        let what = format!("closed a connection for streams with /{with}: {why}");
        self.host.note(Level::Warn, what);
    }
}
