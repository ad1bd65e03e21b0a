//! The fake node's view of the ring.

use super::*;

impl RingOperator for Fake {
    async fn cluster(&self) -> Answer<Cluster> {
        let of = |version: &str| NodesOf {
            version: version.to_owned(),
            nodes: vec!["127.0.0.23:7000".parse().unwrap()],
        };
        Ok(Cluster {
            name: "peer".into(),
            snitch: "org.apache.cassandra.locator.GossipingPropertyFileSnitch".into(),
            dynamic_snitch: true,
            partitioner: "org.apache.cassandra.dht.Murmur3Partitioner".into(),
            schema_versions: vec![of("d03783d7-b468-3c1a-82f1-8e30b2edde8b")],
            releases: vec![of("5.0.9")],
        })
    }

    async fn ring(&self, keyspace: Option<&str>) -> Answer<Ring> {
        match keyspace {
            Some("nosuch") => Err(Refusal::BadUse("The keyspace nosuch, does not exist".into())),
            _ => Ok(self.ring.borrow().clone().unwrap_or_else(ring)),
        }
    }

    async fn schema_version(&self) -> Answer<String> {
        Ok(HOST_ID.to_owned())
    }

    async fn ranges(&self, keyspace: &str) -> Answer<Vec<ReplicatedRange>> {
        let replica = |n: u8| RangeReplica {
            address: ([127, 0, 0, n], 7000).into(),
            native: ([127, 0, 0, n], 9042).into(),
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
        };
        let range = ReplicatedRange {
            start: "-5".into(),
            end: "7".into(),
            replicas: vec![replica(81), replica(82)],
        };
        match keyspace {
            "ks" => Ok(vec![range]),
            _ => Err(Refusal::Failed(format!("No such keyspace: {keyspace}"))),
        }
    }

    async fn endpoints(&self, table: &TableName, key: &str) -> Answer<Vec<std::net::SocketAddr>> {
        self.note(format!("endpoints {}.{} {key}", table.keyspace, table.table))?;
        Ok(vec![([127, 0, 0, 2], 7000).into()])
    }

    async fn gossip(&self) -> Answer<Vec<Endpoint>> {
        let value = |name: &str, version, value: &str| GossipValue {
            name: name.to_owned(),
            version,
            value: value.to_owned(),
        };
        let values = vec![value("STATUS", 30, "NORMAL,-19"), value("TOKENS", 28, "")];
        let [one, two] = [1, 2].map(|n| ([127, 0, 0, n], 7000).into());
        Ok(vec![
            Endpoint { address: one, generation: 1_795_298_978, version: 12, values, phi: None },
            Endpoint {
                address: two,
                generation: 0,
                version: -1,
                values: Vec::new(),
                phi: Some(0.25),
            },
        ])
    }

    async fn gossip_active(&self) -> Answer<bool> {
        Ok(true)
    }

    async fn set_gossip(&self, takes_part: bool) -> Answer<()> {
        self.note(format!("gossip {takes_part}"))
    }

    async fn seeds(&self) -> Answer<Vec<std::net::SocketAddr>> {
        Ok(vec![([127, 0, 0, 2], 7000).into()])
    }

    async fn resume_bootstrap(&self) -> Answer<bool> {
        Ok(true)
    }

    async fn join(&self) -> Answer<()> {
        Ok(())
    }

    async fn decommission(&self, force: bool) -> Answer<Decommission> {
        Ok(if force { Decommission::UnderWay } else { Decommission::Before })
    }

    async fn move_to(&self, token: &str) -> Answer<()> {
        self.note(format!("move {token}"))
    }

    async fn remove_node(&self, host: &str) -> Answer<()> {
        self.note(format!("remove {host}"))
    }

    async fn removal_status(&self) -> Answer<String> {
        Ok("No token removals in process.".to_owned())
    }

    async fn force_removal(&self) -> Answer<()> {
        self.note("force removal".to_owned())
    }

    async fn reload_seeds(&self) -> Answer<Option<Vec<std::net::SocketAddr>>> {
        Ok(self.seeds_after_reload.borrow().clone())
    }

    async fn rebuild(&self, order: &RebuildOrder) -> Answer<()> {
        self.note(format!("rebuild {order:?}"))
    }

    async fn plan(&self, change: &PlanChange) -> Answer<MovePlan> {
        match change {
            PlanChange::Decommission { node: Some(node) } => {
                Err(Refusal::BadUse(format!("{node} is no node of the ring")))
            }
            _ => {
                self.note(format!("plan {change:?}"))?;
                Ok(move_plan())
            }
        }
    }

    async fn failures(&self, failing: Failing) -> Answer<FailurePlan> {
        self.note(format!("{failing:?}"))?;
        let notes = vec!["All choices are equally likely.".to_owned()];
        Ok(FailurePlan { failures: failures("16 tokens", "1 token"), notes })
    }

    async fn assassinate(&self, address: &str) -> Answer<()> {
        self.note(format!("assassinate {address}"))
    }
}
