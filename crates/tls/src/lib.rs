//! TLS for connections of clients and of nodes: key stores as Cassandra's configuration names them,
//! and sessions over the sockets of `env`.
//!
//! A connection without TLS has one branch more. The node has one set of certificates. A helper
//! thread reads them, and every shard gets them.
#![forbid(unsafe_code)]

mod certificates;
mod client;
mod stream;
mod wire;

pub use certificates::{Certificates, ClientCertificates, Dialing, TlsError, TlsOptions};
pub use client::{ClientOptions, ClientStream};
pub use stream::{HANDSHAKE, Tls, TlsStream, explain};
pub use wire::Wire;
