//! The task of a connection to another node: opened when there is something to send, kept, and
//! opened again when it ends.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use metrics::Level;
use tls::{Tls, Wire};

use crate::link::{Ended, Link};
use crate::messenger::Messenger;

/// How long to wait before another attempt to connect, after the first that failed and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// What goes to the socket at once, in bytes.
const FLUSH_BYTES: usize = 64 << 10;

impl Link {
    /// Sends what waits, for as long as somebody needs it.
    pub async fn run(self: Rc<Self>, messenger: Rc<Messenger>) {
        let mut pause = RETRY.0;
        loop {
            while self.outgoing.borrow().waiting() == 0 {
                if self.is_over.get() {
                    return;
                }
                self.work.notified().await;
            }
            match self.open(&messenger).await {
                Ok(stream) => {
                    pause = RETRY.0;
                    self.failure.take();
                    messenger.tally.outbound.add(1);
                    let ended = self.pump_until_broken(&messenger, &stream).await;
                    messenger.tally.outbound.add(-1);
                    messenger.note_link(self.to, self.connection(), Level::Info, &ended);
                }
                Err(why) => {
                    messenger.tally.connect_errors.inc();
                    messenger.note_link(self.to, self.connection(), Level::Warn, &why);
                    *self.failure.borrow_mut() = Some(why);
                    self.outgoing.borrow_mut().closed();
                    // what waits grows old meanwhile
                    let now = match messenger.is_one_of_many(self.to) {
                        true => i64::MAX,
                        false => messenger.unix_millis(),
                    };
                    self.flush(&messenger, now, &mut Vec::new());
                    messenger.env.sleep(pause).await;
                    pause = (pause * 2).min(RETRY.1);
                    continue;
                }
            }
            self.outgoing.borrow_mut().closed();
        }
    }

    async fn open(&self, messenger: &Messenger) -> Result<Wire, Ended> {
        let tls = messenger.encryption(self.to)?.map(|encryption| &encryption.tls);
        let opened = self.open_with(messenger, tls).await;
        if opened.is_err() && messenger.env.planted("link_falls_back_to_plain") {
            return self.open_with(messenger, None).await;
        }
        opened
    }

    async fn open_with(&self, messenger: &Messenger, tls: Option<&Tls>) -> Result<Wire, Ended> {
        let (env, patience) = (&messenger.env, messenger.patience());
        let connect = Wire::connect(env, (self.to.ip, self.to.port).into(), tls);
        let stream = match env.timeout(patience.connect, connect).await {
            Ok(connected) => connected.map_err(|error| error.to_string())?,
            Err(_) => {
                return Err(format!(
                    "cannot connect within {:?} (internode_tcp_connect_timeout)",
                    patience.connect
                ));
            }
        };
        // what a node that is gone does not acknowledge keeps the next message from it for as long
        // as the system retries
        stream.set_user_timeout(patience.user).map_err(|error| error.to_string())?;
        let greet = self.greet(&stream);
        match env.timeout(patience.handshake(), greet).await {
            Ok(greeted) => greeted.map(|()| stream),
            Err(_) => Err("it did not answer the handshake in time".to_owned()),
        }
    }

    async fn greet(&self, stream: &Wire) -> Result<(), Ended> {
        let mut out = Vec::new();
        self.outgoing.borrow_mut().connected(&mut out);
        stream.write_all(&out).await.map_err(|error| tls::explain(&error))?;
        let mut answer = [0; internode::handshake::ACCEPT_LENGTH];
        let mut filled = 0;
        while !self.outgoing.borrow().is_open() {
            let room = answer.get_mut(filled..).unwrap_or_default();
            let read = stream.read(room).await.map_err(|error| tls::explain(&error))?;
            if read == 0 {
                return Err("the other node closed it in the handshake".to_owned());
            }
            filled += read;
            let seen = answer.get(..filled).unwrap_or_default();
            let mut outgoing = self.outgoing.borrow_mut();
            outgoing.received(seen).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Moves messages that wait into `out`, as many as go to the socket at once, and drops those
    /// that are too late.
    fn flush(&self, messenger: &Messenger, now: i64, out: &mut Vec<u8>) {
        let mut gone = Vec::new();
        messenger.with_send_quotas(self.to, |quotas| {
            let mut outgoing = self.outgoing.borrow_mut();
            outgoing.flush(now, quotas, FLUSH_BYTES, out, &mut |message| gone.push(message));
        });
        let kind = self.connection();
        gone.into_iter().for_each(|message| messenger.gone(self.to, kind, message));
    }

    /// Sends until the connection ends, or is interrupted.
    async fn pump_until_broken(&self, messenger: &Messenger, stream: &Wire) -> Ended {
        let mut broken = pin!(self.broken.notified());
        let mut pump = pin!(self.pump(messenger, stream));
        std::future::poll_fn(|cx| match broken.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready("gossip reports the node as down".to_owned()),
            Poll::Pending => pump.as_mut().poll(cx),
        })
        .await
    }

    /// Sends until the connection ends.
    async fn pump(&self, messenger: &Messenger, stream: &Wire) -> Ended {
        let mut out = Vec::new();
        loop {
            out.clear();
            self.flush(messenger, messenger.unix_millis(), &mut out);
            if out.is_empty() {
                if self.is_over.get() {
                    return "no longer needed".to_owned();
                }
                if let Some(ended) = self.wait(stream).await {
                    return ended;
                }
                continue;
            }
            messenger.tally.sent_bytes.add(out.len() as u64);
            let written = stream.write_all(&out);
            let patience = messenger.patience().user;
            match messenger.env.timeout(patience, written).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error.to_string(),
                Err(_) => {
                    return format!(
                        "the other node read nothing for {patience:?} (internode_tcp_user_timeout)"
                    );
                }
            }
        }
    }

    /// Waits for something to send; why the connection ended, if it does first.
    async fn wait(&self, stream: &Wire) -> Option<Ended> {
        let mut work = pin!(self.work.notified());
        let mut byte = [0; 1];
        std::future::poll_fn(|cx| {
            if work.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            loop {
                // the other side has nothing to say but that it ends
                match stream.try_read(&mut byte) {
                    Ok(Some(0)) => return Poll::Ready(Some("the other node closed it".to_owned())),
                    Ok(Some(_)) => {
                        let why = "the other node sent bytes where none are expected".to_owned();
                        return Poll::Ready(Some(why));
                    }
                    Err(error) => return Poll::Ready(Some(tls::explain(&error))),
                    Ok(None) => match stream.poll_readable(cx) {
                        Poll::Ready(()) => {}
                        Poll::Pending => return Poll::Pending,
                    },
                }
            }
        })
        .await
    }
}
