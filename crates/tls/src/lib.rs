//! TLS for connections of clients and of nodes: key stores as Cassandra's configuration names them,
//! and sessions over the sockets of `env`.
#![forbid(unsafe_code)]

mod certificates;
mod stream;

pub use certificates::{Certificates, ClientCertificates, Dialing, TlsError, TlsOptions};
pub use stream::{HANDSHAKE, Tls, TlsStream, explain};
