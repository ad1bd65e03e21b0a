//! Addresses of hosts and of this machine's interfaces: asked before a node starts, of the resolver
//! and of the kernel. Each may take as long as a resolver takes.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use super::sys;

/// The addresses of a host, as Java prefers them: of IPv4 first.
///
/// # Errors
/// If nobody knows it.
pub fn addresses_of(host: &str) -> io::Result<Vec<IpAddr>> {
    let mut found: Vec<IpAddr> = (host, 0).to_socket_addrs()?.map(|address| address.ip()).collect();
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    Ok(found)
}

/// The addresses of this machine, each with its interface.
///
/// # Errors
/// If the kernel does not say.
pub fn interfaces() -> io::Result<Vec<(String, IpAddr)>> {
    sys::interfaces()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(interfaces().unwrap().contains(&("lo".to_owned(), loopback)));
        assert_eq!(addresses_of("127.0.0.1").unwrap(), [loopback]);
        assert!(addresses_of("no such host").is_err());
    }
}
