//! DESCRIBE CLUSTER.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::CqlType;

use super::{DescribeContext, column, existing};
use crate::error::CqlError;
use crate::metadata::ResultColumn;

/// What DESCRIBE CLUSTER tells.
pub struct Cluster<'a> {
    /// `cluster_name`.
    pub name: &'a str,
    /// The partitioner's Java class.
    pub partitioner: &'a str,
    /// The snitch's Java class: that of `DynamicEndpointSnitch` where it stands before the
    /// configured one.
    pub snitch: &'a str,
    /// Of a keyspace: each range by its last token, with its replicas as `/address:port`.
    #[allow(clippy::type_complexity)]
    pub ownership: &'a dyn Fn(&str) -> Vec<(String, Vec<String>)>,
}

fn short<'a>(class: &'a str, package: &str) -> &'a str {
    class.strip_prefix(package).unwrap_or(class)
}

/// The columns and the one row. Ranges are shown where the session uses a keyspace of a user.
pub(super) fn describe(
    context: &DescribeContext<'_>,
) -> Result<(Arc<[ResultColumn]>, Vec<Vec<u8>>), CqlError> {
    let cluster = context.cluster;
    let mut columns: Vec<ResultColumn> =
        ["cluster", "partitioner", "snitch"].map(|name| column(name, CqlType::Text)).into();
    let texts = [
        cluster.name,
        short(cluster.partitioner, "org.apache.cassandra.dht."),
        short(cluster.snitch, "org.apache.cassandra.locator."),
    ];
    let mut row: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).into();
    if let Some(keyspace) =
        context.keyspace.filter(|name| !crate::system_keyspaces::is_system(name))
    {
        let keyspace = existing(context.schema, keyspace)?;
        let text = || Arc::new(CqlType::Text);
        let replicas = Arc::new(CqlType::List { element: text(), frozen: false });
        let ty = CqlType::Map { key: text(), value: replicas, frozen: false };
        columns.push(column("range_ownership", ty));
        row.push(serialize_ownership((cluster.ownership)(&keyspace.name)));
    }
    Ok((columns.into(), row))
}

/// A `map<text, list<text>>`.
fn serialize_ownership(ranges: Vec<(String, Vec<String>)>) -> Vec<u8> {
    let ranges: BTreeMap<String, Vec<String>> = ranges.into_iter().collect();
    let mut out = Vec::new();
    push_length(&mut out, ranges.len());
    for (token, replicas) in ranges {
        push_bytes(&mut out, token.as_bytes());
        let mut list = Vec::new();
        push_length(&mut list, replicas.len());
        for replica in replicas {
            push_bytes(&mut list, replica.as_bytes());
        }
        push_bytes(&mut out, &list);
    }
    out
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    // a cluster's tokens are far from the limit of a length
    out.extend(i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_length(out, bytes.len());
    out.extend(bytes);
}
