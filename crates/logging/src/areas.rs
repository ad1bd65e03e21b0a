//! Areas of the node that an operator gives a level of their own, and Cassandra's loggers for each.
//!
//! The area of a line follows from the source file that says it. A logger's name of Cassandra
//! stands for the area that does here what those classes do there.

/// One area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Area(usize);

struct Row {
    /// Our name.
    name: &'static str,
    /// Packages and classes of Cassandra, without [`PACKAGE`].
    loggers: &'static [&'static str],
    /// Beginnings of the paths of our source files.
    files: &'static [&'static str],
}

const fn row(
    name: &'static str,
    loggers: &'static [&'static str],
    files: &'static [&'static str],
) -> Row {
    Row { name, loggers, files }
}

/// The package that all loggers of Cassandra lie in.
pub(crate) const PACKAGE: &str = "org.apache.cassandra";

/// What no other row has.
const SERVICE: usize = 0;

const ROWS: &[Row] = &[
    row("service", &["service", "tools", "utils", "concurrent", "config", "metrics"], &[]),
    row(
        "gossip",
        &["gms", "gossip", "locator", "service.PendingRangeCalculatorService"],
        &["crates/cluster/src/membership/", "crates/gossip/"],
    ),
    row(
        "bootstrap",
        &["dht", "service.StorageService"],
        &["crates/cluster/src/topology/", "crates/node/src/ring_entry.rs"],
    ),
    row(
        "schema",
        &["schema"],
        &[
            "crates/cluster/src/schema_owner.rs",
            "crates/cluster/src/schema_ring/",
            "crates/cluster/src/membership/agree.rs",
            "crates/schema/",
        ],
    ),
    row(
        "streaming",
        &["streaming", "dht.RangeStreamer"],
        &["crates/streaming/", "crates/cluster/src/topology/streams.rs"],
    ),
    row("repair", &["repair"], &["crates/cluster/src/repair/", "crates/repair/"]),
    row("hints", &["hints"], &["crates/hints/", "crates/cluster/src/hints/"]),
    row("batches", &["batchlog"], &["crates/cluster/src/ring_batch.rs"]),
    row(
        "messaging",
        &["net"],
        &["crates/messaging/", "crates/internode/", "crates/cluster/src/membership/serve.rs"],
    ),
    row("compaction", &["db.compaction"], &["crates/node/src/upkeep.rs"]),
    row("commitlog", &["db.commitlog"], &["crates/storage/src/commitlog/"]),
    row(
        "storage",
        &["db", "io", "index"],
        &["crates/storage/", "crates/node/src/failure.rs", "crates/node/src/operator/sstables.rs"],
    ),
    row(
        "guardrails",
        &["db.guardrails"],
        &["crates/node/src/guardrails.rs", "crates/cluster/src/guardrails.rs"],
    ),
    row("caches", &["cache"], &["crates/node/src/saved_caches.rs"]),
    row(
        "cql",
        &["cql3", "transport", "service.paxos"],
        &[
            "crates/node/src/client_server.rs",
            "crates/node/src/prepared.rs",
            "crates/node/src/background.rs",
            "crates/server/",
        ],
    ),
    row(
        "security",
        &["auth", "security"],
        &["crates/node/src/encryption.rs", "crates/node/src/first_superuser.rs"],
    ),
];

impl Area {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ROWS.len()).map(Self)
    }

    /// The area of a line that this source file says (`std::panic::Location::file`).
    pub fn of(file: &str) -> Self {
        // built elsewhere, the path begins with where the sources lay
        let file = file.find("crates/").and_then(|at| file.get(at..)).unwrap_or(file);
        let rows = ROWS.iter().enumerate();
        let files = rows.flat_map(|(n, row)| row.files.iter().map(move |file| (n, *file)));
        let of = files.filter(|(_, begins)| file.starts_with(begins));
        Self(of.max_by_key(|(_, begins)| begins.len()).map_or(SERVICE, |(n, _)| n))
    }

    /// Our name for it.
    pub fn name(self) -> &'static str {
        ROWS.get(self.0).map_or("", |row| row.name)
    }

    /// Beginnings of the paths of the source files that say its lines.
    pub fn files(self) -> &'static [&'static str] {
        ROWS.get(self.0).map_or(&[], |row| row.files)
    }

    /// The areas that a logger's name stands for: a package for all below it, a class for the area
    /// whose package it is in.
    pub(crate) fn under(logger: &str) -> Vec<Self> {
        if is_prefix(logger, PACKAGE) {
            return Self::all().collect();
        }
        if let Some(area) = Self::all().find(|area| area.name() == logger) {
            return vec![area];
        }
        let name = logger.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('.'));
        let Some(name) = name else { return Vec::new() };
        let owns = |area: Self| ROWS.get(area.0).map_or(&[][..], |row| row.loggers);
        let near = |area: &Self| {
            let above = owns(*area).iter().filter(|own| is_prefix(own, name));
            above.map(|own| own.len()).max()
        };
        let nearest = Self::all().max_by_key(near).filter(|area| near(area).is_some());
        let is_below = |area: &Self| owns(*area).iter().any(|own| is_prefix(name, own));
        Self::all().filter(|area| is_below(area) || nearest == Some(*area)).collect()
    }

    /// Its place among all of them.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// Is a name the other, or a package above it?
fn is_prefix(above: &str, name: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
