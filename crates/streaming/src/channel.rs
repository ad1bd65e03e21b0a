//! The first connection of a session, on the shard that has it: what is sent over it, in order.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use env::Env;
use env::sync::Notify;
use messaging::StreamSocket;

use crate::wire::Message;

/// How long what is left may take to be sent when a session ends.
const LINGER: Duration = Duration::from_secs(10);

/// One.
pub(crate) struct Channel {
    pub socket: Rc<StreamSocket>,
    waiting: RefCell<Vec<u8>>,
    work: Notify,
    is_closing: Cell<bool>,
}

impl Channel {
    pub fn new(socket: Rc<StreamSocket>) -> Rc<Self> {
        Rc::new(Self {
            socket,
            waiting: RefCell::default(),
            work: Notify::new(),
            is_closing: Cell::new(false),
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

    /// Sends what there is until it is closed; if nothing is for a period, that this side is still
    /// there.
    ///
    /// # Errors
    /// Why the connection broke.
    pub async fn pump(&self, env: &Env, keep_alive: Duration) -> Result<(), String> {
        loop {
            let bytes = self.waiting.take();
            if bytes.is_empty() {
                if self.is_closing.get() {
                    return Ok(());
                }
                match keep_alive.is_zero() {
                    true => self.work.notified().await,
                    false => {
                        if env.timeout(keep_alive, self.work.notified()).await.is_err() {
                            let written = Message::KeepAlive.write(&mut self.waiting.borrow_mut());
                            assert!(written.is_ok(), "one byte fits into a message");
                        }
                    }
                }
                continue;
            }
            let written = self.socket.write_all(&bytes);
            match self.is_closing.get() {
                false => {
                    if let Err(error) = written.await {
                        return Err(error.to_string());
                    }
                }
                true => {
                    let _ = env.timeout(LINGER, written).await;
                }
            }
        }
    }
}
