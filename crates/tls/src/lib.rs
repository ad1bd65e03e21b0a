//! TLS for connections of clients and of nodes: key stores as Cassandra's configuration names them, and sessions over the sockets of
//! `env`.

mod certificates;
mod stream;

pub use certificates::{Certificates, ClientCertificates, Dialing, TlsError, TlsOptions};
pub use stream::{Tls, TlsStream};
