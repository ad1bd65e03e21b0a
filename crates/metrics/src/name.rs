//! Cassandra's metric names: a type, a name, and the key properties between them.

use std::fmt;

/// What a metric's values count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Things in a histogram that counts one more than there were, as no bucket is for nothing;
    /// shown without that one.
    OneMore,
    /// Time in microseconds; shown in seconds.
    Micros,
    /// Bytes.
    Bytes,
    /// A share, as a gauge of millionths; shown from 0 to 1.
    Ratio,
    /// The same; under k8ssandra's names from 0 to 100.
    Percent,
}

impl Unit {
    /// A value, or the sum of `values`, as it is shown.
    pub(crate) fn lowered(self, value: u64, values: u64) -> u64 {
        if self == Self::OneMore { value.saturating_sub(values) } else { value }
    }
}

/// The name of a metric (`metrics.CassandraMetricsRegistry.MetricName`), as in
/// `org.apache.cassandra.metrics:type=Table,keyspace=ks,scope=t,name=ReadLatency`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// `ClientRequest`, `Table`, `ThreadPools`, ...
    pub kind: &'static str,
    /// `Latency`, `LiveDiskSpaceUsed`, ...
    pub name: &'static str,
    /// Of `type=Table` and `type=Keyspace`.
    pub keyspace: Option<String>,
    /// Of `type=ThreadPools`: `request`, `internal`, `transport`.
    pub path: Option<String>,
    /// The table, the kind of request, the pool, ...
    pub scope: Option<String>,
}

impl Name {
    /// A name without properties.
    pub fn new(kind: &'static str, name: &'static str) -> Self {
        Self { kind, name, keyspace: None, path: None, scope: None }
    }

    /// With the property `scope`.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// With the property `keyspace`.
    #[must_use]
    pub fn keyspace(mut self, keyspace: impl Into<String>) -> Self {
        self.keyspace = Some(keyspace.into());
        self
    }

    /// With the property `path`.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// A metric of a table.
    pub fn of_table(keyspace: &str, table: &str, name: &'static str) -> Self {
        Self::new("Table", name).keyspace(keyspace).scope(table)
    }

    /// A metric of a kind of client request: `Read`, `Write`, `RangeSlice`, `CASRead`, ...
    pub fn of_request(scope: &str, name: &'static str) -> Self {
        Self::new("ClientRequest", name).scope(scope)
    }

    /// Properties in the order of the MBean's name.
    pub fn properties(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("keyspace", &self.keyspace), ("path", &self.path), ("scope", &self.scope)]
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }
}

impl fmt::Display for Name {
    /// The name of Cassandra's MBean.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "org.apache.cassandra.metrics:type={}", self.kind)?;
        for (key, value) in self.properties() {
            write!(f, ",{key}={value}")?;
        }
        write!(f, ",name={}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_mbean() {
        assert_eq!(
            Name::of_table("ks", "t", "ReadLatency").to_string(),
            "org.apache.cassandra.metrics:type=Table,keyspace=ks,scope=t,name=ReadLatency"
        );
        assert_eq!(
            Name::new("ThreadPools", "ActiveTasks").path("request").scope("ReadStage").to_string(),
            "org.apache.cassandra.metrics:type=ThreadPools,path=request,scope=ReadStage,name=ActiveTasks"
        );
        assert_eq!(
            Name::new("CommitLog", "TotalCommitLogSize").to_string(),
            "org.apache.cassandra.metrics:type=CommitLog,name=TotalCommitLogSize"
        );
    }
}
