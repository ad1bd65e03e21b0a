//! Accepting connections up to a limit.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use env::sync::Semaphore;
use env::{Class, Env, TcpListener, TcpStream};
use metrics::Counter;

/// How long to wait after a failed accept (no file descriptors left): it would fail again at once.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// Where.
    pub address: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl BindError {
    pub(crate) fn new(address: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let address = address.to_string();
        move |source| Self { address, source }
    }
}

/// Serves connections until it is dropped: each in a task of its own, at most `limit` at a time;
/// those beyond are counted and handed to `refuse`, which must not wait.
pub(crate) async fn accept<H, F>(
    env: Env,
    listener: TcpListener,
    limit: u64,
    refused: Counter,
    handle: H,
    refuse: impl Fn(&TcpStream),
) where
    H: Fn(Env, TcpStream) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    let permits = Semaphore::new(limit);
    let handle = Rc::new(handle);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            env.sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(permit) = permits.try_acquire(1) else {
            refused.inc();
            refuse(&stream);
            continue;
        };
        let (served, handle) = (env.clone(), handle.clone());
        env.spawn(Class::Admin, async move {
            handle(served, stream).await;
            drop(permit);
        });
    }
}
