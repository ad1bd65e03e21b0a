//! Tables of `system_views` that list what there is: settings, clients, tasks, snapshots, hints,
//! gossip, cached keys.

use schema::Schema;

use super::data::{KeySet, NodeData};
use super::sink::{Datum, Sink};

fn named(sink: &mut Sink<'_>, values: &[(String, Option<String>)]) {
    for (name, value) in values {
        sink.row(&[("name", Datum::Text(name)), ("value", value.as_deref().into())]);
    }
}

pub(super) fn settings(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    named(sink, data.settings.as_ref()?);
    Some(())
}

pub(super) fn system_properties(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    named(sink, data.system_properties.as_ref()?);
    Some(())
}

pub(super) fn clients(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for client in data.clients.as_ref()? {
        let tls = client.tls.as_ref();
        sink.row(&[
            ("address", Datum::Inet(client.address.ip())),
            ("port", Datum::Int(client.address.port().into())),
            ("client_options", client.options.as_ref().map_or(Datum::Null, Datum::TextMap)),
            ("connection_stage", Datum::Text(client.stage)),
            ("driver_name", client.driver_name.as_deref().into()),
            ("driver_version", client.driver_version.as_deref().into()),
            ("hostname", Datum::Text(&client.hostname)),
            ("keyspace_name", client.keyspace.as_deref().into()),
            ("protocol_version", Datum::Int(client.protocol_version)),
            ("request_count", Datum::BigInt(client.requests)),
            ("ssl_cipher_suite", tls.map(|(_, suite)| suite.as_str()).into()),
            ("ssl_enabled", Datum::Boolean(tls.is_some())),
            ("ssl_protocol", tls.map(|(protocol, _)| protocol.as_str()).into()),
            ("username", client.username.as_deref().into()),
        ]);
    }
    Some(())
}

pub(super) fn sstable_tasks(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for task in data.sstable_tasks.as_ref()? {
        let ratio = if task.total == 0 { 1.0 } else { task.progress as f64 / task.total as f64 };
        sink.row(&[
            ("keyspace_name", Datum::Text(task.keyspace.as_deref().unwrap_or("*"))),
            ("table_name", Datum::Text(task.table.as_deref().unwrap_or("*"))),
            ("task_id", Datum::Uuid(task.id)),
            ("completion_ratio", Datum::Double(ratio)),
            ("kind", Datum::Text(&task.kind)),
            ("progress", Datum::BigInt(task.progress)),
            ("sstables", Datum::Int(task.sstables)),
            ("target_directory", task.target_directory.as_deref().into()),
            ("total", Datum::BigInt(task.total)),
            ("total_compressed", Datum::BigInt(task.total_compressed)),
            ("unit", Datum::Text(task.unit)),
        ]);
    }
    Some(())
}

pub(super) fn snapshots(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for snapshot in data.snapshots.as_ref()? {
        sink.row(&[
            ("name", Datum::Text(&snapshot.name)),
            ("keyspace_name", Datum::Text(&snapshot.keyspace)),
            ("table_name", Datum::Text(&snapshot.table)),
            ("created_at", snapshot.created_at.map_or(Datum::Null, Datum::Timestamp)),
            ("ephemeral", Datum::Boolean(snapshot.ephemeral)),
            ("expires_at", snapshot.expires_at.map_or(Datum::Null, Datum::Timestamp)),
            ("size_on_disk", Datum::BigInt(snapshot.size_on_disk)),
            ("true_size", Datum::BigInt(snapshot.true_size)),
        ]);
    }
    Some(())
}

pub(super) fn pending_hints(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for hints in data.pending_hints.as_ref()? {
        let address = hints.address;
        sink.row(&[
            ("host_id", Datum::Uuid(hints.host_id)),
            ("address", address.map_or(Datum::Null, |address| Datum::Inet(address.ip()))),
            ("dc", Datum::Text(&hints.datacenter)),
            ("files", Datum::Int(hints.files)),
            ("newest", Datum::Timestamp(hints.newest)),
            ("oldest", Datum::Timestamp(hints.oldest)),
            ("port", address.map_or(Datum::Null, |address| Datum::Int(address.port().into()))),
            ("rack", Datum::Text(&hints.rack)),
            ("status", Datum::Text(hints.status)),
        ]);
    }
    Some(())
}

/// Lines of one millisecond share a partition and are numbered in it.
pub(super) fn system_logs(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    let (mut before, mut order) = (None, 0);
    for line in data.logs.as_ref()? {
        order = if before.replace(line.at) == Some(line.at) { order + 1 } else { 0 };
        sink.row(&[
            ("timestamp", Datum::Timestamp(line.at)),
            ("order_in_millisecond", Datum::Int(order)),
            ("level", Datum::Text(line.level)),
            ("logger", Datum::Text(line.logger)),
            ("message", Datum::Text(&line.message)),
        ]);
    }
    Some(())
}

pub(super) fn queries(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for query in data.queries.as_ref()? {
        sink.row(&[
            ("thread_id", Datum::Text(&query.thread)),
            ("queued_micros", Datum::BigInt(query.queued)),
            ("running_micros", Datum::BigInt(query.running)),
            ("task", Datum::Text(&query.task)),
        ]);
    }
    Some(())
}

pub(super) fn gossip_info(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for endpoint in data.gossip.as_ref()? {
        let versions: Vec<String> =
            endpoint.states.iter().map(|state| format!("{}_version", state.name)).collect();
        let mut values = vec![
            ("address", Datum::Inet(endpoint.address.ip())),
            ("port", Datum::Int(endpoint.address.port().into())),
            ("generation", Datum::Int(endpoint.generation)),
            ("heartbeat", Datum::Int(endpoint.heartbeat)),
            ("hostname", Datum::Text(&endpoint.hostname)),
        ];
        for (state, version) in endpoint.states.iter().zip(&versions) {
            if state.name != "tokens" {
                values.push((&state.name, Datum::Text(&state.value)));
            }
            values.push((version, Datum::Int(state.version)));
        }
        sink.row(&values);
    }
    Some(())
}

fn roles(sink: &mut Sink<'_>, data: &NodeData, keys: fn(&KeySet) -> &Vec<String>) -> Option<()> {
    for role in keys(data.auth_keys.as_ref()?) {
        sink.row(&[("role", Datum::Text(role))]);
    }
    Some(())
}

pub(super) fn credentials_cache_keys(
    sink: &mut Sink<'_>,
    _: &Schema,
    data: &NodeData,
) -> Option<()> {
    roles(sink, data, |keys| &keys.credentials)
}

pub(super) fn jmx_permissions_cache_keys(
    sink: &mut Sink<'_>,
    _: &Schema,
    data: &NodeData,
) -> Option<()> {
    roles(sink, data, |keys| &keys.jmx_permissions)
}

pub(super) fn network_permissions_cache_keys(
    sink: &mut Sink<'_>,
    _: &Schema,
    data: &NodeData,
) -> Option<()> {
    roles(sink, data, |keys| &keys.network_permissions)
}

pub(super) fn roles_cache_keys(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    roles(sink, data, |keys| &keys.roles)
}

pub(super) fn permissions_cache_keys(
    sink: &mut Sink<'_>,
    _: &Schema,
    data: &NodeData,
) -> Option<()> {
    for (role, resource) in &data.auth_keys.as_ref()?.permissions {
        sink.row(&[("role", Datum::Text(role)), ("resource", Datum::Text(resource))]);
    }
    Some(())
}
