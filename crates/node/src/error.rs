//! Why a node does not start or ends early: one line each.

use std::path::PathBuf;

use thiserror::Error;

/// An error that ends the node.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The runtime does not start.
    #[error("{0}")]
    Start(#[from] env::real::StartError),
    /// The data directory does not open.
    #[error("{0}")]
    Boot(#[from] cluster::BootError),
    /// Storage failed.
    #[error("{0}")]
    Storage(#[from] storage::StorageError),
    /// A directory cannot be made or written.
    #[error("cannot create or write {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Another node has the directory.
    #[error("cannot use data directory {}: another node runs on it; stop that node, or set \
             another data_dir", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A port cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The operator's socket or the metrics cannot be listened on.
    #[error("{0}")]
    Admin(#[from] admin::BindError),
    /// A shard ended while the node still needed it.
    #[error("{0}")]
    Stopping(#[from] storage::shards::Stopping),
    /// The node would let everybody in, and may not.
    #[error(
        "rpc_address {address} is not loopback while authenticator is AllowAllAuthenticator: set authenticator to PasswordAuthenticator, or open_without_authentication to true"
    )]
    Open {
        /// Where it would listen.
        address: std::net::IpAddr,
    },
    /// The operator's port would be open to other machines, and may not.
    #[error(
        "admin_address {address} is not loopback while admin_encryption_options or authentication \
         is off: set admin_encryption_options.enabled to true and authenticator to \
         PasswordAuthenticator, or admin_address to 127.0.0.1"
    )]
    OpenOperator {
        /// Where it would listen.
        address: std::net::IpAddr,
    },
    /// The commit log cannot be compressed so.
    #[error("commitlog_compression: {0}")]
    LogCompression(String),
    /// `commitlog_archiving.properties` makes no sense.
    #[error("commitlog_archiving.properties: {0}")]
    Archiving(#[from] storage::commitlog::ArchivingError),
    /// There is no TLS as the configuration wants it.
    #[error("{section}: {why}")]
    Tls {
        /// The options that want it.
        section: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The password of the first superuser cannot be read.
    #[error("cannot read first_superuser_password_file {}: {why}", path.display())]
    FirstPassword {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The first superuser cannot be made.
    #[error("cannot create the first superuser: {0}")]
    FirstSuperuser(String),
    /// An address that is none.
    #[error(
        "{key}: {value} is not a valid address; set an IP address, host names are not supported"
    )]
    Address {
        /// The configuration's key.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// The node does not become a part of the ring.
    #[error("{0}")]
    Join(#[from] cluster::JoinError),
    /// Clients would be served by a node that lacks its data.
    #[error(
        "Node is not yet bootstrapped completely. Use nodetool to check bootstrap state and \
         resume. For more, see `nodetool help bootstrap`"
    )]
    NotBootstrapped,
    /// Who logs in would be looked for where this node does not serve yet.
    #[error(
        "Not starting client transports in write_survey mode as it's bootstrapping or auth is \
         enabled"
    )]
    Surveying,
    /// The clock's reserve cannot be given back at the end.
    #[error("{0}")]
    Clock(#[from] cluster::ReserveError),
    /// The clock's reserve could not be kept while the node ran: no timestamp would be safe.
    #[error(
        "{0}; stopping the node, as timestamps could repeat after a crash; check the disk of \
         data_dir"
    )]
    ClockLost(cluster::ReserveError),
}
