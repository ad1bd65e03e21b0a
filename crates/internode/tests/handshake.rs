//! Handshakes as Cassandra writes them, every pair of versions, and what is no handshake.

use crate::common;

use common::{RELEASES, hex, vectors};
use internode::handshake::{ACCEPT_LENGTH, MAX_INITIATE};
use internode::{Accept, Connection, Framing, HandshakeError, Initiate, Versions};
use proptest::prelude::*;
use types::Address;

fn address(text: &str) -> Address {
    let socket: std::net::SocketAddr = text.parse().unwrap();
    Address::new(socket.ip(), socket.port())
}

fn connection(name: &str) -> Connection {
    match name {
        "URGENT_MESSAGES" => Connection::Urgent,
        "SMALL_MESSAGES" => Connection::Small,
        "LARGE_MESSAGES" => Connection::Large,
        "STREAMING" => Connection::Streaming,
        other => panic!("{other}"),
    }
}

fn framing(name: &str) -> Framing {
    match name {
        "UNPROTECTED" => Framing::Unprotected,
        "LZ4" => Framing::Lz4,
        "CRC" => Framing::Crc,
        other => panic!("{other}"),
    }
}

#[test]
fn initiate_as_cassandra_writes_it() {
    for release in RELEASES {
        for words in vectors(release, "initiate") {
            let [kind, frames, min, max, from, bytes] = words[..] else { panic!("{words:?}") };
            let initiate = Initiate {
                versions: Versions { min: min.parse().unwrap(), max: max.parse().unwrap() },
                connection: connection(kind),
                framing: framing(frames),
                from: address(from),
            };
            let bytes = hex(bytes);
            let read = Initiate::read(&bytes, Versions::OURS);
            if release == "5.0.9" && min == "10" {
                // 5.0 has its lowest version where those before 4.0 had their only one, and speaks
                // to none of those
                assert_eq!(read, Err(HandshakeError::TooOld(10, Versions::OURS)));
                continue;
            }
            assert_eq!(read, Ok(Some((initiate, bytes.len()))), "{words:?}");
            // 4.1 has the version there that it asks for
            if release == "5.0.9" {
                let mut out = Vec::new();
                initiate.write(&mut out);
                assert_eq!(out, bytes, "{words:?}");
                assert!(out.len() <= MAX_INITIATE);
            }
            for cut in 0..bytes.len() {
                assert_eq!(Initiate::read(&bytes[..cut], Versions::OURS), Ok(None), "{cut}");
            }
        }
    }
}

#[test]
fn accept_as_cassandra_writes_it() {
    for words in vectors("5.0.9", "accept") {
        let [version, max, bytes] = words[..] else { panic!("{words:?}") };
        let accept = Accept { max: max.parse().unwrap(), version: version.parse().unwrap() };
        let bytes = hex(bytes);
        let mut out = Vec::new();
        accept.write(&mut out);
        assert_eq!((&out, out.len()), (&bytes, ACCEPT_LENGTH));
        assert_eq!(Accept::read(&bytes, Versions::OURS), Ok(Some(accept)));
        for cut in 0..bytes.len() {
            assert_eq!(Accept::read(&bytes[..cut], Versions::OURS), Ok(None));
        }
        assert_eq!(accept.agreed(Versions::OURS).is_ok(), accept.version == 12);
    }
}

fn initiate(min: u8, max: u8) -> Initiate {
    Initiate {
        versions: Versions { min, max },
        connection: Connection::Small,
        framing: Framing::Crc,
        from: address("127.0.0.41:7000"),
    }
}

/// Both sides of a handshake between those versions; what they speak in the end.
fn meet(opener: Versions, acceptor: Versions) -> (Option<u8>, Option<u8>) {
    let mut wire = Vec::new();
    initiate(opener.min, opener.max).write(&mut wire);
    let (read, _) = Initiate::read(&wire, acceptor).expect("well formed").expect("whole");
    let (answer, accepted) = read.accept(acceptor);
    wire.clear();
    answer.write(&mut wire);
    let answer = Accept::read(&wire, opener).expect("well formed").expect("whole");
    (accepted.ok(), answer.agreed(opener).ok())
}

#[test]
fn every_pair_of_versions() {
    let all = || (12..=14u8).flat_map(|min| (min..=14).map(move |max| Versions { min, max }));
    for (opener, acceptor) in all().flat_map(|a| all().map(move |b| (a, b))) {
        let common = opener.max.min(acceptor.max);
        let wanted = (common >= opener.min && common >= acceptor.min).then_some(common);
        assert_eq!(meet(opener, acceptor), (wanted, wanted), "{opener:?} {acceptor:?}");
    }
    // a 5.0 in its default mode, one without compatibility, a 4.1, a 6.0
    for (theirs, speaks) in
        [((12, 12), true), ((12, 13), true), ((10, 12), true), ((13, 14), false)]
    {
        let theirs = Versions { min: theirs.0, max: theirs.1 };
        let (answer, agreed) = initiate(theirs.min, theirs.max).accept(Versions::OURS);
        assert_eq!((answer.version, answer.max), (12, 12));
        assert_eq!(agreed.is_ok(), speaks, "{theirs:?}");
    }
}

#[test]
fn refusals_say_why() {
    let refused = |bytes: &[u8]| Initiate::read(bytes, Versions::OURS).unwrap_err().to_string();
    // a client of the native protocol, and TLS
    assert_eq!(
        refused(&[4, 0, 0, 0, 5]),
        "it is not a Cassandra node: its first bytes are 04000000"
    );
    assert_eq!(refused(&[0x16, 3, 1]), "it is not a Cassandra node: its first bytes are 16030100");
    let bytes = |min: u8, max: u8, flags: u32| {
        let mut out = Vec::new();
        initiate(min, max).write(&mut out);
        let with = u32::from_be_bytes(out[4..8].try_into().unwrap()) ^ flags;
        out[4..8].copy_from_slice(&with.to_be_bytes());
        let end = out.len() - 4;
        let checksum = segment::crc32(&out[..end]);
        out[end..].copy_from_slice(&checksum.to_be_bytes());
        out
    };
    assert_eq!(
        refused(&bytes(10, 11, 0)),
        "the peer speaks internode messaging 10, from before Cassandra 4.0, this node 12; upgrade the peer"
    );
    assert_eq!(refused(&bytes(14, 13, 0)), "the peer speaks internode messaging from 14 to 13");
    let mut damaged = bytes(12, 12, 0);
    damaged[9] ^= 1;
    assert!(
        refused(&damaged).starts_with("its handshake fails its checksum: 0x"),
        "{}",
        refused(&damaged)
    );
    // kind of messages 0; framing 3; a stream in frames; an address of 7 bytes
    assert!(refused(&bytes(12, 12, 2)).starts_with("its handshake has invalid flags"));
    assert!(refused(&bytes(12, 12, 1 << 2)).starts_with("its handshake has invalid flags"));
    assert!(refused(&bytes(12, 12, 1 << 3)).starts_with("its handshake has invalid flags"));
    let mut size = bytes(12, 12, 0);
    size[8] = 7;
    assert_eq!(refused(&size), "its handshake has an invalid address: impossible length 7");

    let (_, agreed) = initiate(13, 14).accept(Versions::OURS);
    assert_eq!(
        agreed.unwrap_err().to_string(),
        "the peer speaks internode messaging 13 to 14, this node 12"
    );
    let agreed = Accept { max: 14, version: 13 }.agreed(Versions::OURS);
    assert_eq!(
        agreed.unwrap_err().to_string(),
        "the peer wants internode messaging 13, up to 14; this node speaks 12"
    );
    let mut accept = Vec::new();
    Accept { max: 12, version: 12 }.write(&mut accept);
    accept[7] ^= 1;
    assert!(matches!(Accept::read(&accept, Versions::OURS), Err(HandshakeError::Checksum { .. })));
    assert!(matches!(
        Accept::read(&[0, 0, 0, 11], Versions::OURS),
        Err(HandshakeError::TooOld(11, _))
    ));
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64), start in 0usize..9) {
        let mut with_magic = vec![0xCA, 0x55, 0x2D, 0xFA, 12, 12, 12, 2];
        with_magic.truncate(start);
        with_magic.extend(&bytes);
        for input in [&bytes, &with_magic] {
            match Initiate::read(input, Versions::OURS) {
                // what is no handshake is known after as many bytes as one can have
                Ok(None) => prop_assert!(input.len() < MAX_INITIATE),
                Ok(Some((_, used))) => prop_assert!(used <= input.len()),
                Err(_) => {}
            }
            let _ = Accept::read(input, Versions::OURS);
        }
    }
}
