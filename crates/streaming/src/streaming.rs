//! Streams of one shard: its connections. The first shard has the sessions besides.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use env::{Class, Env};
use messaging::StreamSocket;
use metrics::Level;
use storage::Engine;
use storage::shards::Remote;

use crate::channel::Channel;
use crate::host::Host;
use crate::limits::{Limits, Load, Pace};
use crate::progress::SessionView;
use crate::session::{Event, SessionId};
use crate::sessions::{ControlAt, Sessions};
use crate::wire::Message;
use crate::wire_input::WireInput;

/// How many periods of keep-alive who began a session may be silent.
const SILENT_PERIODS: u32 = 2;

/// What an operator says of streams.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `stream_entire_sstables`: are SSTables sent whole where all of them is asked for?
    pub whole_files: bool,
    /// How fast files are sent, at the start.
    pub limits: Limits,
    /// `streaming_keep_alive_period`: how often a side says that it is still there; never, if zero.
    pub keep_alive: Duration,
    /// Does a session begin only if there is room for what it brings?
    pub checks_space: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            whole_files: true,
            limits: Limits::default(),
            keep_alive: Duration::from_secs(300),
            checks_space: true,
        }
    }
}

/// Streams of one shard.
pub struct Streaming {
    pub(crate) env: Env,
    pub(crate) engine: Rc<Engine>,
    pub(crate) others: Remote<Streaming>,
    pub(crate) host: Rc<dyn Host>,
    pub(crate) settings: Settings,
    /// First connections of sessions that this shard has.
    channels: RefCell<BTreeMap<u64, Rc<Channel>>>,
    next_channel: Cell<u64>,
    /// On the first shard.
    pace: Pace,
    /// On the first shard.
    pub(crate) sessions: Sessions,
}

impl Streaming {
    /// None yet.
    pub fn new(
        engine: &Rc<Engine>,
        others: Remote<Streaming>,
        host: Rc<dyn Host>,
        settings: Settings,
    ) -> Rc<Self> {
        Rc::new(Self {
            env: engine.env().clone(),
            engine: Rc::clone(engine),
            others,
            host,
            settings,
            channels: RefCell::default(),
            next_channel: Cell::new(0),
            pace: Pace::new(settings.limits),
            sessions: Sessions::default(),
        })
    }

    /// The sessions under way and the last ones that ended; on the first shard.
    pub fn sessions(&self) -> Vec<SessionView> {
        self.sessions.views()
    }

    /// Which shard sends the files of a session.
    pub(crate) fn sender_of(&self, id: SessionId) -> usize {
        (id.plan.0 as usize ^ usize::from(id.peer.port)) % self.others.count()
    }

    /// How fast files are sent; on the first shard.
    pub fn limits(&self) -> Limits {
        self.pace.limits()
    }

    /// Has files sent that fast, until the next start; on the first shard.
    pub fn set_limits(&self, limits: Limits) {
        self.pace.set(limits);
    }

    /// Waits until so much more may be sent.
    pub(crate) async fn throttle(&self, load: Load) {
        let paid = self.others.call_async(0, Class::Streaming, move |first: Rc<Self>| async move {
            first.pace.take(&first.env, load).await;
        });
        // a node that ends is not held up
        let _ = paid.await;
    }

    /// Another node opened a connection for streams to this shard.
    pub fn serve(self: &Rc<Self>, socket: StreamSocket) {
        self.open_channel(socket, None);
    }

    /// Reads what comes over a connection. If it is the first one of a session that this node began,
    /// its name is given.
    pub(crate) fn open_channel(
        self: &Rc<Self>,
        mut socket: StreamSocket,
        session: Option<SessionId>,
    ) -> ControlAt {
        let number = self.next_channel.get();
        self.next_channel.set(number + 1);
        let received = socket.take_received();
        let socket = Rc::new(socket);
        let channel = Channel::new(Rc::clone(&socket));
        self.channels.borrow_mut().insert(number, Rc::clone(&channel));
        let control = ControlAt { shard: self.others.me(), channel: number };
        let this = Rc::clone(self);
        self.env.spawn(Class::Streaming, async move {
            let input = WireInput::new(&this.env, &socket, received);
            let named = Cell::new(session);
            let why = {
                let mut read = pin!(this.read(input, control, &named));
                let mut pump = pin!(channel.pump(&this.env, this.settings.keep_alive));
                poll_fn(|cx| match pump.as_mut().poll(cx) {
                    Poll::Ready(Ok(())) => Poll::Ready("the session ended".to_owned()),
                    Poll::Ready(Err(why)) => Poll::Ready(why),
                    Poll::Pending => read.as_mut().poll(cx),
                })
                .await
            };
            this.channels.borrow_mut().remove(&number);
            if let Some(id) = named.get() {
                this.others.send(0, move |first| first.event(id, Event::Closed(why)));
            }
        });
        control
    }

    /// Reads messages until the connection ends, and says why that was. `named` is the session of
    /// which it is the first connection, once that is known.
    async fn read(
        self: &Rc<Self>,
        mut input: WireInput,
        control: ControlAt,
        named: &Cell<Option<SessionId>>,
    ) -> String {
        let is_own = named.get().is_some();
        loop {
            // who began a session says that it is still there
            let is_expected = !is_own && named.get().is_some();
            let next = self.within_patience(is_expected, Message::read(&mut input)).await;
            let message = match next {
                Some(Ok(Some(message))) => message,
                Some(Ok(None)) => return "the other node closed the connection".to_owned(),
                Some(Err(error)) => return self.refused(&error.to_string()),
                None => {
                    let limit = self.settings.keep_alive * SILENT_PERIODS;
                    return self.refused(&format!(
                        "the other node said nothing for {limit:?}, twice \
                         streaming_keep_alive_period"
                    ));
                }
            };
            match (message, named.get()) {
                (Message::Stream(header), _) => {
                    if let Err(why) = self.receive(*header, &mut input).await {
                        return self.refused(&why);
                    }
                }
                (Message::KeepAlive, None) => {}
                (Message::Init(init), None) => {
                    let begun = self.others.call(0, move |first| first.follow(&init, control));
                    match begun.await {
                        Ok(Ok(id)) => named.set(Some(id)),
                        Ok(Err(why)) => return self.refused(&why),
                        Err(stopping) => return stopping.to_string(),
                    }
                }
                (message, Some(id)) => {
                    self.others.send(0, move |first| first.event(id, Event::Message(message)));
                }
                (message, None) => {
                    let what = format!("{} before the session began", message.kind());
                    return self.refused(&what);
                }
            }
        }
    }

    /// Waits for the next message; none if it does not come in time although it is expected.
    async fn within_patience<T>(
        &self,
        is_expected: bool,
        next: impl Future<Output = T>,
    ) -> Option<T> {
        if self.settings.keep_alive.is_zero() || !is_expected {
            return Some(next.await);
        }
        self.env.timeout(self.settings.keep_alive * SILENT_PERIODS, next).await.ok()
    }

    fn refused(&self, why: &str) -> String {
        self.host.note(Level::Warn, format!("closed a connection for streams: {why}"));
        why.to_owned()
    }

    pub(crate) fn send_over(&self, channel: u64, bytes: &[u8]) {
        if let Some(channel) = self.channels.borrow().get(&channel) {
            channel.send(bytes);
        }
    }

    pub(crate) fn close_channel(&self, channel: u64) {
        if let Some(channel) = self.channels.borrow().get(&channel) {
            channel.close();
        }
    }
}

impl std::fmt::Debug for Streaming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Streaming({:?})", self.env)
    }
}
