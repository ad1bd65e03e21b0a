//! The fake node's samples.

use admin::{Answer, Sample, SampleOrder, Sampled, SampledTables, Sampler, SamplesOperator};

use super::Fake;

/// What `profileload` showed of Cassandra 5.0.9.
impl SamplesOperator for Fake {
    async fn sample(&self, order: SampleOrder) -> Answer<Vec<Sampled>> {
        let sample = |table: &str, value: &str, count| Sample {
            table: table.to_owned(),
            value: value.to_owned(),
            count,
            error: 0,
        };
        let one = |sampler| {
            let samples = match sampler {
                Sampler::Reads => vec![sample("k1.t", "1", 8), sample("k1.u", "a b:4", 1)],
                Sampler::LocalReadTime => vec![sample(
                    "k1.t",
                    "SELECT * FROM k1.t WHERE k = 3 LIMIT 5000 ALLOW FILTERING",
                    783,
                )],
                Sampler::ReadTombstoneCount => vec![sample("k1.t", "3", 4)],
                Sampler::WriteSize => vec![sample("k1.t", "6", 134)],
                _ => Vec::new(),
            };
            Sampled { sampler, samples }
        };
        self.note(format!("sample {:?} {}", order.of, order.duration_millis))?;
        Ok(order.samplers.into_iter().map(one).collect())
    }

    async fn schedule_sampling(&self, order: SampleOrder, interval: u32) -> Answer<bool> {
        self.note(format!("sample {:?} every {interval}", order.of))?;
        Ok(order.of.keyspace.is_none())
    }

    async fn stop_sampling(&self, of: SampledTables) -> Answer<bool> {
        Ok(of.keyspace.is_none())
    }

    async fn samplings(&self) -> Answer<Vec<SampledTables>> {
        let of = |keyspace: &str, table: Option<&str>| SampledTables {
            keyspace: Some(keyspace.to_owned()),
            table: table.map(str::to_owned),
        };
        Ok(vec![of("k1", None), of("k1", Some("t")), of("longer_name", Some("t"))])
    }

    async fn sampled_keys(&self) -> Answer<Vec<i64>> {
        Ok(vec![-7666712501878195859, 5])
    }
}
