//! From the text of a `cassandra.yaml`, and overrides, to a typed [`Config`].
//!
//! Pure: no file is opened and no host is resolved here. Every key of Cassandra 5.0.9 is known
//! with its kind, unit and default, under its present and its former names. A key is either
//! served (it reaches a field of [`Config`]), means nothing without a JVM, guards what the node
//! does not do, or is not served yet; one of the last kind stops the start unless it has its
//! default, so that the node never runs open where the file asked for a lock.
//!
//! Path of a value: `yaml` composes nodes under fixed bounds, `values` finds each node's key in
//! `table` (or `old`) and reads it by its `key::Kind`, `served` decides whether it may pass,
//! `get` turns values into the fields of `config` (`build`), and `settings` shows them again.

#![forbid(unsafe_code)]

mod addresses;
mod build;
mod config;
mod dropped;
mod environment;
mod error;
mod get;
mod guardrails;
mod key;
mod nearest;
mod old;
mod origin;
mod quantity;
mod section;
mod served;
mod settings;
mod table;
mod values;
mod yaml;

pub use addresses::Network;
pub use config::{Config, Lookup, OWN_FILE};
pub use dropped::{DROPPED, Dropped};
pub use environment::{Environment, VARIABLES};
pub use error::{Error, Result};
pub use get::MAX_TOKENS;
pub use guardrails::TABLE_PROPERTIES;
pub use key::{Key, Kind, Standing, Value};
pub use old::{Meaning, OLD, Old};
pub use quantity::{Bound, Quantity, Unit};
pub use section::{
    Auth, AuthCache, BatchlogEndpoints, Beside, Cdc, ClientTls, CommitFailurePolicy, CommitLogSync,
    DiskFailurePolicy, DynamicSnitch, FlushCompression, Given, Hints, Host, Internode,
    InternodeCapacity, InternodeCompression, InternodeEncryption, Joining, LogCompression,
    NativeTransport, ReadSizes, Repair, Replaces, SavedCache, SavedCaches, ServerTls, Store,
    StreamLimits, Streams, Tables, Timeouts, TlsStores, TokenAllocation, TokenMethod,
};
pub use table::keys;
pub use table::own::MAX_SHARDS;
pub use values::Source;
pub use yaml::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
