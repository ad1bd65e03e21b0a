//! Accepting connections.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use env::{Class, ListenOptions, Task, TcpListener, TcpStream};

use crate::settings::ACCEPT_PAUSE;
use crate::shard::Shard;

/// Listens on `address` and gives every connection to `take`, until the task is dropped. Every
/// shard listens on the same address, and the system deals the connections out.
pub(crate) fn listen(
    shard: &Rc<Shard>,
    address: SocketAddr,
    take: impl Fn(TcpStream, SocketAddr) + 'static,
) -> io::Result<(SocketAddr, Task<()>)> {
    let options = ListenOptions { reuse_port: shard.env.shards() > 1 };
    let listener = TcpListener::bind(&shard.env, address, options)?;
    let bound = listener.local_addr().unwrap_or(address);
    let accepting = Rc::clone(shard);
    let task = shard.env.spawn_task(Class::Statement, async move {
        loop {
            match listener.accept().await {
                Ok((stream, remote)) => take(stream, remote),
                Err(_) => {
                    accepting.tally.accept_errors.inc();
                    accepting.env.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    });
    Ok((bound, task))
}
