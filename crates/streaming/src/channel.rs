//! The first connection of a session, on the shard that has it: what is sent over it, in order.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use env::Env;
use env::sync::Notify;
use messaging::StreamSocket;

/// How long what is left may take to be sent when a session ends.
const LINGER: Duration = Duration::from_secs(10);

/// One.
pub(crate) struct Channel {
    pub socket: Rc<StreamSocket>,
    waiting: RefCell<Vec<u8>>,
    work: Notify,
    is_closing: Cell<bool>,
    closed: Notify,
}

impl Channel {
    pub fn new(socket: Rc<StreamSocket>) -> Rc<Self> {
        Rc::new(Self {
            socket,
            waiting: RefCell::default(),
            work: Notify::new(),
            is_closing: Cell::new(false),
            closed: Notify::new(),
        })
    }

    /// Sends bytes after those before them.
    pub fn send(&self, bytes: &[u8]) {
        self.waiting.borrow_mut().extend_from_slice(bytes);
        self.work.notify_one();
    }

    /// Closes once all is sent.
    pub fn close(&self) {
        self.is_closing.set(true);
        self.work.notify_one();
    }

    /// Resolves once it is to be read no more.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Sends what there is until it is closed.
    ///
    /// # Errors
    /// Why the connection broke.
    pub async fn pump(&self, env: &Env) -> Result<(), String> {
        let ended = loop {
            let bytes = self.waiting.take();
            if bytes.is_empty() {
                if self.is_closing.get() {
                    break Ok(());
                }
                self.work.notified().await;
                continue;
            }
            let written = self.socket.write_all(&bytes);
            match self.is_closing.get() {
                false => {
                    if let Err(error) = written.await {
                        break Err(error.to_string());
                    }
                }
                true => {
                    let _ = env.timeout(LINGER, written).await;
                }
            }
        };
        self.closed.notify_all();
        ended
    }
}
