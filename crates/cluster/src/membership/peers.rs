//! What is known of other nodes on disk: `system.peers_v2`, and `system.peers` for drivers of
//! before 4.0 (`db.SystemKeyspace`).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use rows::{Deletion, Mutation, RowBuilder, Unfiltered, UpdateBuilder};
use schema::Table;
use storage::StorageError;
use types::{Address, CqlType, Token};

use super::{Life, Membership, NodeInfo, Nodes};
use crate::internal::{self, Internal, Times};
use crate::shard_context::ShardContext;

fn inet(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(four) => four.octets().to_vec(),
        IpAddr::V6(six) => six.octets().to_vec(),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

fn port(bytes: &[u8]) -> Option<u16> {
    i32::from_be_bytes(bytes.try_into().ok()?).try_into().ok()
}

/// The tokens of a node as a set of texts.
fn tokens(node: &NodeInfo) -> Vec<Vec<u8>> {
    let mut tokens: Vec<_> = node.tokens.iter().map(|t| t.to_string().into_bytes()).collect();
    tokens.sort_by(|a, b| CqlType::Text.compare(a, b));
    tokens
}

fn table(shard: &ShardContext, name: &str) -> Option<Arc<Table>> {
    shard.schema().table("system", name).cloned()
}

/// Deletes all that is stored under an address.
fn forget(table: &Arc<Table>, ip: IpAddr, timestamp: i64) -> Mutation {
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &inet(ip));
    update.delete_partition(Deletion::new(timestamp, timestamp / 1_000_000));
    Mutation::new(update.finish(&mut RowBuilder::new()))
}

impl Membership {
    /// Stores what changed, one node after the other.
    pub(super) async fn keep_peers(self: Rc<Self>) {
        loop {
            let next = self.unsaved.borrow_mut().pop_first();
            let Some(node) = next else {
                self.changed.notified().await;
                continue;
            };
            // another time, if the log does not take it now
            if self.save(node).await.is_err() {
                self.env.sleep(super::TICK).await;
                self.unsaved.borrow_mut().insert(node);
            }
        }
    }

    async fn save(&self, changed: Address) -> Result<(), StorageError> {
        let engine = &self.shard.engine;
        let now = self.env.unique_micros();
        // nodes may share an address, with ports of their own
        let nodes: Vec<NodeInfo> = {
            let nodes = self.nodes.borrow();
            let here = nodes.values().filter(|n| n.address.ip == changed.ip);
            here.filter(|node| node.life.is_member()).cloned().collect()
        };
        let is_gone = !nodes.iter().any(|node| node.address == changed);
        let text = |value: &str| Internal::Value(value.as_bytes().to_vec());
        let times = Times::new(self.env.unique_micros());
        for (name, is_new) in [("peers", false), ("peers_v2", true)] {
            let Some(table) = table(&self.shard, name) else { continue };
            if is_gone {
                internal::apply(engine, forget(&table, changed.ip, now)).await?;
            }
            for node in nodes.iter().filter(|node| is_gone || node.address == changed) {
                let mut columns = vec![
                    ("data_center", text(&node.data_center)),
                    ("host_id", Internal::Value(node.host_id.to_vec())),
                    ("rack", text(&node.rack)),
                    ("release_version", text(&node.release)),
                    ("tokens", Internal::Set(tokens(node))),
                ];
                columns.extend(
                    node.schema
                        .map(|version| ("schema_version", Internal::Value(version.to_vec()))),
                );
                let native = Internal::Value(inet(node.native.ip()));
                let native_port = i32::from(node.native.port()).to_be_bytes().to_vec();
                match is_new {
                    true => columns.extend([
                        ("native_address", native),
                        ("native_port", Internal::Value(native_port)),
                    ]),
                    false => columns.push(("rpc_address", native)),
                }
                let key = inet(node.address.ip);
                let peer_port = i32::from(node.address.port).to_be_bytes();
                let clustering: &[&[u8]] = if is_new { &[&peer_port] } else { &[] };
                let row = internal::insert(&table, &[&key], clustering, &columns, &times);
                internal::apply(engine, row).await?;
            }
        }
        Ok(())
    }
}

/// The nodes that were stored.
pub(super) async fn stored(shard: &ShardContext) -> Result<Nodes, StorageError> {
    let Some(table) = table(shard, "peers_v2") else { return Ok(Nodes::new()) };
    let now = shard.env.unix_micros() / 1_000_000;
    let mut nodes = Nodes::new();
    for mutation in internal::read_all(&shard.engine, &table).await? {
        for update in mutation.updates() {
            let Some(ip) = address(&update.key) else { continue };
            for unfiltered in update.unfiltereds(false) {
                let Unfiltered::Row(row) = unfiltered else { continue };
                let mut values: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
                for cell in row.cells().filter(|cell| cell.is_live(now)) {
                    let Some(column) = table.regulars.get(usize::from(cell.column)) else {
                        continue;
                    };
                    let value = cell.path.unwrap_or(cell.value).to_vec();
                    values.entry(&column.name).or_default().push(value);
                }
                let peer_port = row.clustering().iter().next().flatten().and_then(port);
                let Some(at) = peer_port else { continue };
                let node = Address::new(ip, at);
                nodes.extend(node_of(node, &values).map(|info| (node, info)));
            }
        }
    }
    Ok(nodes)
}

fn node_of(address_: Address, values: &BTreeMap<&str, Vec<Vec<u8>>>) -> Option<NodeInfo> {
    let first = |name: &str| values.get(name).and_then(|all| all.first());
    let text = |name| first(name).and_then(|value| String::from_utf8(value.clone()).ok());
    let native_ip = first("native_address").and_then(|value| address(value));
    let native_port = first("native_port").and_then(|value| port(value));
    let native = SocketAddr::new(native_ip.unwrap_or(address_.ip), native_port.unwrap_or_default());
    let token = |value: &Vec<u8>| std::str::from_utf8(value).ok()?.parse().ok().map(Token);
    let mut tokens: Vec<Token> =
        values.get("tokens").into_iter().flatten().filter_map(token).collect();
    tokens.sort_unstable();
    if tokens.is_empty() {
        return None;
    }
    Some(NodeInfo {
        address: address_,
        native,
        host_id: first("host_id")?.as_slice().try_into().ok()?,
        data_center: text("data_center").unwrap_or_default(),
        rack: text("rack").unwrap_or_default(),
        release: text("release_version").unwrap_or_default(),
        tokens,
        schema: first("schema_version").and_then(|value| value.as_slice().try_into().ok()),
        load: None,
        life: Life::Normal,
        is_up: false,
        serves_clients: false,
        generation: 0,
        remover: None,
    })
}
