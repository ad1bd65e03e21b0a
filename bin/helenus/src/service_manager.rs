//! Tells systemd when the node serves and when it stops (`sd_notify`), so that a unit of
//! `Type=notify` is active no sooner than clients are served.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use env::{Class, Env};

/// The variable with the socket's address: a path, or a name behind `@`.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Says that the node serves, and later that it stops. Where no one asked to be told, nothing
/// happens.
pub fn follow(env: &Env) {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    if !said(&socket, "READY=1") {
        return;
    }
    let node = env.clone();
    env.spawn(Class::Admin, async move {
        node.terminated().await;
        said(&socket, "STOPPING=1");
    });
}

/// One datagram, without waiting. A manager that does not take it ends the start by its own limit.
fn said(socket: &OsStr, state: &str) -> bool {
    match send(socket, state) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("helenus: cannot tell {} {state}: {error}", socket.display());
            false
        }
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let datagram = UnixDatagram::unbound()?;
    datagram.set_nonblocking(true)?;
    datagram.send_to_addr(state.as_bytes(), &address).map(drop)
}
