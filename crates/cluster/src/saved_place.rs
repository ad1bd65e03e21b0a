//! What `system.local` keeps of this node's place in the ring (`SystemKeyspace`): how far it is
//! with its data, and its tokens. Each change is synced before anybody hears of it.

use std::collections::BTreeSet;
use std::rc::Rc;

use storage::{Engine, StorageError};
use types::{CqlType, Token};

use crate::internal::{self, Cells, Internal, Times};

/// The one partition of `system.local`.
const KEY: &[u8] = b"local";

/// How far a node is with its data (`SystemKeyspace.BootstrapState`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bootstrap {
    /// It has none, or never said.
    #[default]
    Needed,
    /// It is being fetched.
    InProgress,
    /// It is all there.
    Completed,
    /// The node gave its tokens up.
    Decommissioned,
}

impl Bootstrap {
    const ALL: [Self; 4] = [Self::Needed, Self::InProgress, Self::Completed, Self::Decommissioned];

    /// As `system.local.bootstrapped` and `nodetool info` have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Needed => "NEEDS_BOOTSTRAP",
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Decommissioned => "DECOMMISSIONED",
        }
    }
}

/// A node's place in the ring, as it is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedPlace {
    /// How far it is with its data.
    pub bootstrap: Bootstrap,
    /// Its tokens; none before it chose them.
    pub tokens: BTreeSet<Token>,
}

impl SavedPlace {
    pub(crate) fn of(cells: &Cells) -> Self {
        let said = internal::text(cells, "bootstrapped");
        let bootstrap =
            Bootstrap::ALL.into_iter().find(|state| said.as_deref() == Some(state.name()));
        let token = |text: &Vec<u8>| std::str::from_utf8(text).ok()?.parse().ok().map(Token);
        let tokens = cells.get("tokens").into_iter().flat_map(|tokens| tokens.keys());
        Self {
            bootstrap: bootstrap.unwrap_or_default(),
            tokens: tokens.filter_map(token).collect(),
        }
    }

    /// Saves it, for good.
    ///
    /// # Errors
    /// If it cannot be logged or synced.
    pub(crate) async fn save(&self, engine: &Rc<Engine>) -> Result<(), StorageError> {
        let mut tokens: Vec<Vec<u8>> =
            self.tokens.iter().map(|token| token.to_string().into_bytes()).collect();
        tokens.sort_by(|a, b| CqlType::Text.compare(a, b));
        let bootstrapped = self.bootstrap.name().as_bytes().to_vec();
        let columns =
            [("bootstrapped", Internal::Value(bootstrapped)), ("tokens", Internal::Set(tokens))];
        write(engine, &columns).await
    }
}

/// Has this node be the one of a host id, for good: that of the node whose address it takes over
/// (`SystemKeyspace.setLocalHostId`).
///
/// # Errors
/// If it cannot be logged or synced, or a shard ends.
pub(crate) async fn take_host_id(
    engine: &Rc<Engine>,
    host_id: [u8; 16],
) -> Result<(), StorageError> {
    write(engine, &[("host_id", Internal::Value(host_id.to_vec()))]).await?;
    set_host_id(engine, host_id).await
}

/// Has every shard know the host id.
pub(crate) async fn set_host_id(
    engine: &Rc<Engine>,
    host_id: [u8; 16],
) -> Result<(), StorageError> {
    for shard in 0..engine.shards().count() {
        engine.shards().call(shard, move |engine| engine.set_host_id(host_id)).await?;
    }
    Ok(())
}

async fn write(engine: &Rc<Engine>, columns: &[(&str, Internal)]) -> Result<(), StorageError> {
    let schema = engine.schema();
    let table = schema.table("system", "local").expect("every schema has system.local");
    let times = Times::new(engine.env().unique_micros());
    internal::apply(engine, internal::insert(table, &[KEY], &[], columns, &times)).await?;
    internal::sync_owner(engine, KEY).await
}
