//! Addresses of nodes as they travel between them (`locator.InetAddressAndPort`).

use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::vint::{ReadError, Reader, WriteBytes};

/// Bytes of an IPv4 address and its port.
const SIZE_V4: u8 = 6;
/// Bytes of an IPv6 address and its port.
const SIZE_V6: u8 = 18;

/// The IP address and storage port that a node is known by. Ordered as Cassandra orders them: by
/// the address's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// The port.
    pub port: u16,
}

impl Address {
    /// Of an address and a port.
    pub fn new(ip: impl Into<IpAddr>, port: u16) -> Self {
        Self { ip: ip.into(), port }
    }

    /// Reads one: size, address, port. An IPv4 address in the form of an IPv6 one is an IPv4
    /// address.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let ip = match reader.u8()? {
            SIZE_V4 => IpAddr::V4(Ipv4Addr::from(reader.array::<4>()?)),
            SIZE_V6 => IpAddr::V6(Ipv6Addr::from(reader.array::<16>()?)),
            size => return Err(ReadError::Length(size.into())),
        };
        let ip = match ip {
            IpAddr::V6(six) => six.to_ipv4_mapped().map_or(ip, IpAddr::V4),
            IpAddr::V4(_) => ip,
        };
        Ok(Self { ip, port: reader.u16()? })
    }

    /// Writes what [`Self::read`] reads.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self.ip {
            IpAddr::V4(four) => {
                out.put_u8(SIZE_V4);
                out.put(&four.octets());
            }
            IpAddr::V6(six) => {
                out.put_u8(SIZE_V6);
                out.put(&six.octets());
            }
        }
        out.put_u16(self.port);
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        let ips = match (&self.ip, &other.ip) {
            (IpAddr::V4(a), IpAddr::V6(b)) => a.octets()[..].cmp(&b.octets()[..]),
            (IpAddr::V6(a), IpAddr::V4(b)) => a.octets()[..].cmp(&b.octets()[..]),
            (a, b) => a.cmp(b),
        };
        ips.then(self.port.cmp(&other.port))
    }
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `127.0.0.1:7000`, `[::1]:7000`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.ip, self.port).fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        let socket: std::net::SocketAddr = text.parse().unwrap();
        Address::new(socket.ip(), socket.port())
    }

    #[test]
    fn as_cassandra_writes_them() {
        for (text, bytes) in [
            ("127.0.0.2:7000", "067f0000021b58"),
            ("[2001:db8::1]:7001", "1220010db80000000000000000000000011b59"),
        ] {
            let mut out = Vec::new();
            address(text).write(&mut out);
            assert_eq!(crate::hex::to_hex(&out), bytes);
            assert_eq!(Address::read(&mut Reader::new(&out)), Ok(address(text)));
            assert_eq!(address(text).to_string(), text);
            for cut in 0..out.len() {
                assert!(Address::read(&mut Reader::new(&out[..cut])).is_err());
            }
        }
        // the sizes from before 4.0, without a port
        assert_eq!(Address::read(&mut Reader::new(&[4, 127, 0, 0, 1])), Err(ReadError::Length(4)));
        let mut mapped = vec![SIZE_V6];
        mapped.extend([0; 10]);
        mapped.extend([0xff, 0xff, 127, 0, 0, 2, 0x1b, 0x58]);
        assert_eq!(Address::read(&mut Reader::new(&mapped)), Ok(address("127.0.0.2:7000")));
    }

    #[test]
    fn ordered_by_bytes() {
        let order = ["9.0.0.1:1", "9.0.0.1:2", "[2001:db8::1]:1", "127.0.0.1:1", "[ff::]:1"];
        // ff::, as bytes 00ff.., comes first
        let mut sorted: Vec<_> = order.iter().map(|text| address(text)).collect();
        sorted.sort();
        let sorted: Vec<_> = sorted.iter().map(Address::to_string).collect();
        assert_eq!(
            sorted,
            ["[ff::]:1", "9.0.0.1:1", "9.0.0.1:2", "[2001:db8::1]:1", "127.0.0.1:1"]
        );
    }
}
