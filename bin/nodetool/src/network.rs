//! nodetool over the network: `-h` and `-p`, with the texts of Cassandra's nodetool where a node
//! cannot be reached.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use crate::password::words_of;

/// Where Cassandra's nodetool looks for a node.
pub const HOST: &str = "127.0.0.1";
/// The same.
pub const PORT: &str = "7199";

#[expect(clippy::disallowed_types, reason = "a program of its own, without crate env")]
pub type Stream = std::net::TcpStream;

/// Why a node is not reached: the name of Java's exception, and its message.
#[derive(Debug)]
pub struct Unreached {
    pub exception: &'static str,
    pub message: String,
    /// Is nobody there?
    pub is_refused: bool,
}

/// The number of a port; the error is that of Java's `parseInt` or of its addresses.
pub fn port(text: &str) -> Result<u16, String> {
    match text.parse::<i32>() {
        Err(_) => Err(format!("For input string: \"{text}\"")),
        Ok(number) => u16::try_from(number).map_err(|_| format!("port out of range:{number}")),
    }
}

/// Connects to a host, by name or address.
pub fn connect(host: &str, port: u16) -> Result<Stream, Unreached> {
    let unreached = |exception, message| Unreached { exception, message, is_refused: false };
    let bare = bare(host);
    let Ok(addresses) = (bare, port).to_socket_addrs() else {
        return Err(unreached("UnknownHostException", bare.to_owned()));
    };
    let addresses: Vec<_> = addresses.collect();
    let stream = Stream::connect(addresses.as_slice()).map_err(|error| Unreached {
        exception: exception(&error),
        message: words_of(&error),
        is_refused: error.kind() == io::ErrorKind::ConnectionRefused,
    })?;
    stream.set_nodelay(true).map_err(|e| unreached("SocketException", words_of(&e)))?;
    Ok(stream)
}

/// An IPv6 address without its brackets.
pub fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Does the host's name say that it is this machine?
pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || bare(host).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn exception(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::TimedOut
        | io::ErrorKind::NetworkUnreachable => "ConnectException",
        io::ErrorKind::HostUnreachable => "NoRouteToHostException",
        _ => "SocketException",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_java_does() {
        assert_eq!(port("7199"), Ok(7199));
        assert_eq!(port("x"), Err("For input string: \"x\"".to_owned()));
        assert_eq!(port("70000"), Err("port out of range:70000".to_owned()));
    }

    #[test]
    fn knows_this_machine() {
        for host in ["127.0.0.1", "127.3.2.1", "::1", "[::1]", "localhost"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "localhost.example", "0.0.0.0", "::ffff:127.0.0.1", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
