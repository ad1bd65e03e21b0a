//! A shard's connections for streams: those that it opened for sessions, and those that others
//! opened. What comes over them goes to a [`Listener`].

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;

use env::{Class, Env};
use messaging::StreamSocket;
use types::Address;

use crate::channel::Channel;
use crate::session::{Event, SessionId};
use crate::wire::{FileHeader, Init, Message};
use crate::wire_input::WireInput;

/// How many periods of keep-alive who began a session may be silent.
const SILENT_PERIODS: u32 = 2;

/// Where the first connection of a session is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlAt {
    pub shard: usize,
    pub channel: u64,
}

/// What comes of it.
type Outcome<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + 'a>>;

/// Who is told what comes over connections.
pub(crate) trait Listener {
    /// Another node begins a session; refused with a reason.
    fn begin(&self, init: Init, control: ControlAt) -> Outcome<'_, SessionId>;

    /// Something happened to a session.
    fn event(&self, id: SessionId, event: Event);

    /// A file comes: all of it is read, or the connection is of no use any more.
    fn file<'a>(&'a self, header: FileHeader, input: &'a mut WireInput) -> Outcome<'a, ()>;

    /// A connection with a node was closed: why.
    fn refused(&self, with: Address, why: &str);
}

/// Those of one shard.
pub(crate) struct Channels {
    env: Env,
    /// How often this side says that it is still there; never, if zero.
    keep_alive: Duration,
    open: RefCell<BTreeMap<u64, Rc<Channel>>>,
    next: Cell<u64>,
    listener: OnceCell<Weak<dyn Listener>>,
}

impl Channels {
    pub fn new(env: &Env, keep_alive: Duration) -> Rc<Self> {
        Rc::new(Self {
            env: env.clone(),
            keep_alive,
            open: RefCell::default(),
            next: Cell::new(0),
            listener: OnceCell::new(),
        })
    }

    /// Has a listener told what comes.
    pub fn listen(&self, listener: Weak<dyn Listener>) {
        let before = self.listener.set(listener);
        assert!(before.is_ok(), "connections have one listener");
    }

    /// Reads what comes over a connection. If it is the first one of a session that this node
    /// began, its name is given.
    pub fn open(self: &Rc<Self>, mut socket: StreamSocket, own: Option<SessionId>) -> ControlAt {
        let number = self.next.get();
        self.next.set(number + 1);
        let received = socket.take_received();
        let socket = Rc::new(socket);
        let channel = Channel::new(Rc::clone(&socket));
        self.open.borrow_mut().insert(number, Rc::clone(&channel));
        let control = ControlAt { shard: self.env.shard(), channel: number };
        let this = Rc::clone(self);
        self.env.spawn(Class::Streaming, async move {
            let input = WireInput::new(&this.env, &socket, received);
            this.run(&channel, input, control, own).await;
            this.open.borrow_mut().remove(&number);
        });
        control
    }

    /// Sends bytes over a connection, if it is open.
    pub fn send(&self, channel: u64, bytes: &[u8]) {
        if let Some(channel) = self.open.borrow().get(&channel) {
            channel.send(bytes);
        }
    }

    /// Closes a connection once what waits is sent.
    pub fn close(&self, channel: u64) {
        if let Some(channel) = self.open.borrow().get(&channel) {
            channel.close();
        }
    }

    async fn run(
        &self,
        channel: &Channel,
        input: WireInput,
        control: ControlAt,
        own: Option<SessionId>,
    ) {
        let Some(listener) = self.listener.get().and_then(Weak::upgrade) else { return };
        let named = Cell::new(own);
        let why = {
            let mut read = pin!(self.read(&*listener, input, control, &named));
            let mut pump = pin!(channel.pump(&self.env, self.keep_alive));
            poll_fn(|cx| match pump.as_mut().poll(cx) {
                Poll::Ready(Ok(())) => Poll::Ready("the session ended".to_owned()),
                Poll::Ready(Err(why)) => Poll::Ready(why),
                Poll::Pending => read.as_mut().poll(cx),
            })
            .await
        };
        if let Some(id) = named.get() {
            listener.event(id, Event::Closed(why));
        }
    }

    /// Reads messages until the connection ends, and says why that was. `named` is the session of
    /// which it is the first connection, once that is known.
    async fn read(
        &self,
        listener: &dyn Listener,
        mut input: WireInput,
        control: ControlAt,
        named: &Cell<Option<SessionId>>,
    ) -> String {
        let is_own = named.get().is_some();
        let peer = input.peer();
        let refused = |why: String| {
            listener.refused(peer, &why);
            why
        };
        let mut file_of = None;
        loop {
            // who began a session says that it is still there
            let is_expected = !is_own && named.get().is_some();
            let message = match self.in_time(is_expected, Message::read(&mut input)).await {
                Some(Ok(Some(message))) => message,
                Some(Ok(None)) => {
                    let why = "the other node closed the connection".to_owned();
                    // as Cassandra minds it, so that worlds see who closes too early
                    let minds = self.env.planted("stream_minds_closed_files");
                    if let Some(id) = file_of.filter(|_| minds) {
                        listener.event(id, Event::Broken(why.clone()));
                    }
                    return why;
                }
                Some(Err(error)) => return refused(error.to_string()),
                None => {
                    let limit = self.keep_alive * SILENT_PERIODS;
                    return refused(format!(
                        "the other node said nothing for {limit:?}, twice \
                         streaming_keep_alive_period"
                    ));
                }
            };
            match (message, named.get()) {
                (Message::Stream(header), None) => {
                    let (plan, peer, session) = (header.plan, header.sender, header.session);
                    file_of = Some(SessionId { plan, peer, session });
                    if let Err(why) = listener.file(*header, &mut input).await {
                        return refused(why);
                    }
                }
                (Message::KeepAlive, None) => {}
                (Message::Init(init), None) => match listener.begin(init, control).await {
                    Ok(id) => named.set(Some(id)),
                    Err(why) => return refused(why),
                },
                // it would keep messages from being read
                (Message::Stream(_), Some(_)) => {
                    return refused("a file on the connection for messages".to_owned());
                }
                (message, Some(id)) => listener.event(id, Event::Message(message)),
                (message, None) => {
                    return refused(format!("{} before the session began", message.kind()));
                }
            }
        }
    }

    /// Waits for the next message; none if it does not come in time although it is expected.
    async fn in_time<T>(&self, is_expected: bool, next: impl Future<Output = T>) -> Option<T> {
        if self.keep_alive.is_zero() || !is_expected {
            return Some(next.await);
        }
        self.env.timeout(self.keep_alive * SILENT_PERIODS, next).await.ok()
    }
}
