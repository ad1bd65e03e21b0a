//! Sessions of the driver: whom they may ask, and when they give up.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileBuilder};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::host_filter::{AllowListHostFilter, DcHostFilter};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::{DefaultRetryPolicy, FallthroughRetryPolicy, RetryPolicy};
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::policies::timestamp_generator::MonotonicTimestampGenerator;
use scylla::statement::Consistency;

use crate::Outcome;
use crate::options::Options;

const PORT: u16 = 9042;
/// After how long another node is asked, and how many others: one of three is left to ask where the
/// connection to the first breaks (the driver gives a request up once a plan has no more nodes,
/// whoever is still asked).
const SPECULATIVE: Duration = Duration::from_millis(200);
const SPECULATIVE_NODES: usize = 1;
/// How long a request is waited for.
const TIMEOUT: Duration = Duration::from_secs(12);
/// The same for one at ALL.
const ALL_TIMEOUT: Duration = Duration::from_secs(60);
/// A connection is asked for a sign of life so often, and given up after so long without one: one
/// to a node that was cut off would else wait for the system's next retry, long after the node is
/// back. The driver sets no TCP_USER_TIMEOUT, and the keepalive of TCP that it does set says
/// nothing while bytes are under way; so it is asked by CQL (OPTIONS), within 5 s in all. Requests
/// on a connection that is given up go to another node, if they may.
const ALIVE_INTERVAL: Duration = Duration::from_secs(2);
const ALIVE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a connection may take to be there. The driver tries again after 50 ms, then after twice
/// as long each time, up to 10 s, and at once when another node says that the node is up: what it
/// then waits for is at most an attempt from before.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How many connections there are, and whether the driver chooses them by shard.
pub struct Pool {
    pub connections: NonZeroUsize,
    pub is_shard_aware: bool,
}

impl Pool {
    pub const OPTIONS: [&str; 2] = ["connections", "shard-aware"];

    pub fn parse(options: &Options) -> Outcome<Self> {
        Ok(Self {
            connections: options.one("connections", NonZeroUsize::MIN)?,
            is_shard_aware: options.one("shard-aware", true)?,
        })
    }
}

/// A level by its name in CQL.
pub fn level(name: &str) -> Outcome<Consistency> {
    Ok(match name {
        "ONE" => Consistency::One,
        "TWO" => Consistency::Two,
        "THREE" => Consistency::Three,
        "QUORUM" => Consistency::Quorum,
        "ALL" => Consistency::All,
        "LOCAL_QUORUM" => Consistency::LocalQuorum,
        "EACH_QUORUM" => Consistency::EachQuorum,
        "LOCAL_ONE" => Consistency::LocalOne,
        other => return Err(format!("no level {other}").into()),
    })
}

fn builder(hosts: &[String]) -> SessionBuilder {
    SessionBuilder::new()
        .known_nodes(hosts.iter().map(|host| format!("{host}:{PORT}")))
        .connection_timeout(CONNECT_TIMEOUT)
        .keepalive_interval(ALIVE_INTERVAL)
        .keepalive_timeout(ALIVE_TIMEOUT)
}

fn addresses(hosts: &[String]) -> Outcome<Vec<SocketAddr>> {
    let address = |host: &String| -> Outcome<SocketAddr> {
        let ip: IpAddr = host.parse().map_err(|e| format!("{host}: {e}"))?;
        Ok(SocketAddr::new(ip, PORT))
    };
    hosts.iter().map(address).collect()
}

/// The data centre of the first of them that the ring knows.
async fn datacenter(hosts: &[String]) -> Outcome<String> {
    let addresses = addresses(hosts)?;
    let filter = AllowListHostFilter::new(addresses.iter())?;
    let session = builder(hosts).host_filter(Arc::new(filter)).build().await?;
    let state = session.get_cluster_state();
    let center = addresses.iter().find_map(|address| {
        let node = state.get_nodes_info().iter().find(|node| node.address.ip() == address.ip())?;
        node.datacenter.clone()
    });
    center.ok_or_else(|| format!("the ring knows none of {}", hosts.join(", ")).into())
}

/// Nodes of one data centre alone, those first that have the row.
fn within(center: &str) -> ExecutionProfileBuilder {
    let policy = DefaultPolicy::builder().prefer_datacenter(center.to_owned()).token_aware(true);
    ExecutionProfile::builder().load_balancing_policy(policy.build()).request_timeout(Some(TIMEOUT))
}

/// For readers and writers that are to notice nothing when nodes of their data centre, that of the
/// first host, come and go.
pub async fn steady(hosts: &[String], level: Consistency) -> Outcome<Session> {
    let center = datacenter(hosts).await?;
    let speculative = SimpleSpeculativeExecutionPolicy {
        max_retry_count: SPECULATIVE_NODES,
        retry_interval: SPECULATIVE,
    };
    let profile = within(&center)
        .retry_policy(Arc::new(DefaultRetryPolicy::new()))
        .speculative_execution_policy(Some(Arc::new(speculative)))
        .consistency(level);
    // A write that a node still works on while another has acknowledged it must not come to be
    // later than the next one: so it is the client that says when a write was. Each attempt has a
    // time of its own, earlier than that of any later write.
    let times = MonotonicTimestampGenerator::new();
    Ok(builder(hosts)
        .host_filter(Arc::new(DcHostFilter::new(center)))
        .timestamp_generator(Arc::new(times))
        .default_execution_profile_handle(profile.build().into_handle())
        .build()
        .await?)
}

/// For reads at ALL through one node.
pub async fn through(host: &str) -> Outcome<Session> {
    let hosts = [host.to_owned()];
    let filter = AllowListHostFilter::new(addresses(&hosts)?.iter())?;
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::All)
        .request_timeout(Some(ALL_TIMEOUT))
        .build();
    Ok(builder(&hosts)
        .host_filter(Arc::new(filter))
        .default_execution_profile_handle(profile.into_handle())
        .build()
        .await?)
}

/// What a driver does by itself with a request that failed.
#[derive(Clone, Copy)]
pub enum Retries {
    /// A request is one attempt, so that its latency is that of one, and a failure shows.
    None,
    /// As applications have it.
    Default,
}

/// For measurements. `is_alone`: the hosts and no others are asked.
pub async fn plain(
    hosts: &[String],
    is_alone: bool,
    level: Consistency,
    pool: &Pool,
    retries: Retries,
) -> Outcome<Session> {
    let center = datacenter(hosts).await?;
    let policy: Arc<dyn RetryPolicy> = match retries {
        Retries::None => Arc::new(FallthroughRetryPolicy::new()),
        Retries::Default => Arc::new(DefaultRetryPolicy::new()),
    };
    let profile =
        within(&center).retry_policy(policy).speculative_execution_policy(None).consistency(level);
    let size = if pool.is_shard_aware { PoolSize::PerShard } else { PoolSize::PerHost };
    let builder = builder(hosts)
        .pool_size(size(pool.connections))
        .disallow_shard_aware_port(!pool.is_shard_aware)
        .default_execution_profile_handle(profile.build().into_handle());
    let builder = if is_alone {
        builder.host_filter(Arc::new(AllowListHostFilter::new(addresses(hosts)?.iter())?))
    } else {
        builder.host_filter(Arc::new(DcHostFilter::new(center)))
    };
    Ok(builder.build().await?)
}
