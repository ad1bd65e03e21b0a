//! Two nodes' schemas: what one is told of the other's statements becomes its own, whatever it was
//! doing meanwhile.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use cluster::schema_ring::{News, Origin, Version};
use config::CommitLogSync;
use env::Class;
use env::sim::{NodeId, World, WorldOptions};
use rows::Mutation;
use schema::{SchemaMutation, TableId};

use crate::{PATIENCE, Serving, all, await_serving, config, start, told};

const KEYSPACE: &str =
    "CREATE KEYSPACE t WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
const SEEDS: u64 = 40;

struct Site {
    world: World,
    id: NodeId,
    serving: Serving,
    news: Rc<RefCell<Vec<News>>>,
}

impl Site {
    fn new(seed: u64, shards: usize) -> Self {
        Self::of_release(seed, shards, "5.0.9")
    }

    fn of_release(seed: u64, shards: usize, release: &str) -> Self {
        let world = World::new(seed, WorldOptions::default());
        let mut config = config();
        config.set(&format!("release_version={release}")).unwrap();
        // what is not synced is lost by a power cut: a schema is, in this mode too
        let minute = Duration::from_secs(60);
        config.commitlog_sync = CommitLogSync::Periodic { period: minute, lag_block: minute };
        let (id, serving) = start(&world, shards, config);
        Self { world, id, serving, news: Rc::default() }
    }

    /// One shard, so that its coordinator is the one that owns the schema.
    fn watched(seed: u64) -> Self {
        let site = Self::new(seed, 1);
        let news = Rc::clone(&site.news);
        told(&site.world, &site.serving, async move |client| {
            client.node.schema_owner().watch(move |one| news.borrow_mut().push(one));
        });
        site
    }

    fn run(&self, texts: &[&str]) -> Vec<(u32, Vec<u8>)> {
        all(&self.world, &self.serving, texts.iter().map(|text| (*text).to_owned()).collect())
    }

    fn version(&self) -> Version {
        let version =
            told(&self.world, &self.serving, async |client| client.node.schema().version());
        let said = &self.run(&["SELECT schema_version FROM system.local"])[0].1;
        assert_eq!(said[4..], version, "what drivers are told");
        version
    }

    fn sent(&self) -> Vec<Mutation> {
        told(&self.world, &self.serving, async |client| {
            client.node.schema_owner().to_send().await.unwrap()
        })
    }

    fn merge(&self, mutations: Vec<Mutation>) -> Result<Version, String> {
        told(&self.world, &self.serving, async move |client| {
            client.node.schema_owner().merge(mutations).await.map_err(|error| error.to_string())
        })
    }

    fn restart(&self) {
        self.world.power_cut(self.id);
        self.serving.take();
        self.world.restart(self.id);
        await_serving(&self.world, &self.serving);
    }

    /// Files of a table, its snapshots aside.
    fn files(&self, table: &str) -> usize {
        let files = self.world.disk(self.id, |disk| disk.files()).unwrap_or_default();
        let part = format!("/t/{table}-");
        let paths = files.iter().map(|(path, _)| path);
        paths.filter(|path| path.contains(&part) && !path.contains("/snapshots/")).count()
    }
}

#[test]
fn what_a_node_is_told_becomes_its_schema() {
    let (here, there) = (Site::watched(1), Site::new(2, 2));
    let statements = [
        KEYSPACE,
        "CREATE TYPE t.u (f int)",
        "CREATE TABLE t.a (k int PRIMARY KEY, v frozen<u>, w text)",
        "CREATE TABLE t.b (k int, c int, s text STATIC, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
        "CREATE INDEX i ON t.a (w)",
        "ALTER TABLE t.a ADD x list<int>",
        "ALTER TABLE t.a DROP x",
        "ALTER TYPE t.u ADD g text",
        "ALTER KEYSPACE t WITH durable_writes = false",
    ];
    for statement in statements {
        here.run(&[statement]);
        let news: Vec<News> = here.news.take();
        let [News { origin: Origin::Here, version, mutations }] = &news[..] else {
            panic!("{statement}: {news:?}")
        };
        assert_eq!(there.merge(mutations.clone()).unwrap(), *version, "{statement}");
        assert_eq!(there.version(), here.version(), "{statement}");
        assert_eq!(*version, here.version());
    }
    // it is served
    there.run(&["INSERT INTO t.a (k, v, w) VALUES (1, {f: 1, g: 'x'}, 'y')"]);
    assert_eq!(there.run(&["SELECT k FROM t.a WHERE w = 'y'"])[0].0, 1);
    // it is durable, and the whole of it is told on
    there.restart();
    assert_eq!(there.version(), here.version());
    assert_eq!(Site::new(3, 1).merge(there.sent()).unwrap(), here.version());
    // what goes takes its files with it
    told(&there.world, &there.serving, async |client| {
        let id = client.node.schema().table("t", "b").unwrap().id;
        client.run("INSERT INTO t.b (k, c) VALUES (1, 1)").await;
        let run = async move |engine: Rc<storage::Engine>| engine.node().unwrap().flush(id).await;
        client.node.engine().shards().call_async(0, Class::Admin, run).await.unwrap().unwrap();
    });
    assert!(there.files("b") > 0);
    here.run(&["DROP TABLE t.b"]);
    let news = here.news.take().remove(0);
    there.merge(news.mutations).unwrap();
    there.world.run_until(|| there.files("b") == 0, PATIENCE).unwrap();
    assert_eq!(there.version(), here.version());
}

#[test]
fn statements_of_both_come_together() {
    let (a, b) = (Site::watched(1), Site::watched(2));
    a.run(&[KEYSPACE]);
    b.merge(a.sent()).unwrap();
    assert_eq!(b.news.take()[0].origin, Origin::Peer);
    a.run(&[
        "CREATE TABLE t.both (k int PRIMARY KEY, v int)",
        "CREATE TABLE t.a (k int PRIMARY KEY)",
    ]);
    b.run(&[
        "CREATE TABLE t.both (k int PRIMARY KEY, w int)",
        "CREATE TABLE t.b (k int PRIMARY KEY)",
    ]);
    b.run(&["INSERT INTO t.both (k, w) VALUES (1, 1)"]);
    let (from_a, from_b) = (a.sent(), b.sent());
    assert_eq!(a.merge(from_b).unwrap(), b.merge(from_a).unwrap());
    assert_eq!(a.version(), b.version());
    let ids = [&a, &b].map(|site| {
        told(&site.world, &site.serving, async |client| {
            let schema = client.node.schema();
            ["a", "b", "both"].map(|name| schema.table("t", name).unwrap().id)
        })
    });
    assert_eq!(ids[0], ids[1]);
    for site in [&a, &b] {
        site.run(&["INSERT INTO t.both (k, v, w) VALUES (2, 2, 2)"]);
        assert_eq!(site.run(&["SELECT v, w FROM t.both WHERE k = 2"])[0].0, 1);
    }
    // nothing is new the second time
    a.news.take();
    a.merge(b.sent()).unwrap();
    assert_eq!(a.news.take().len(), 0);
    // a statement counts, though the other's clock is ahead
    a.world.run_for(Duration::from_secs(3600)).unwrap();
    a.run(&["ALTER TABLE t.both ADD late int"]);
    b.merge(a.sent()).unwrap();
    b.run(&["ALTER TABLE t.both DROP late"]);
    assert_eq!(a.merge(b.sent()).unwrap(), b.version());
    told(&a.world, &a.serving, async |client| {
        assert!(client.node.schema().table("t", "both").unwrap().column("late").is_none());
    });
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let (here, there) = (Site::watched(1), Site::new(2, 1));
    here.run(&[KEYSPACE, "CREATE TABLE t.a (k int PRIMARY KEY)"]);
    let whole = here.sent();
    let before = there.version();
    let told_before = there.sent().len();
    let layouts =
        schema::Schema::new(schema::system::local_keyspaces(schema::Release::V5_0), [0; 16], 0);
    let refused = |change: &dyn Fn(&mut SchemaMutation), why: &str| {
        let mutations = whole.iter().map(|mutation| {
            let mut read = SchemaMutation::from_mutation(mutation).unwrap();
            if read.keyspace == "t" {
                change(&mut read);
            }
            read.to_mutation(&layouts).unwrap().unwrap()
        });
        let error = there.merge(mutations.collect()).unwrap_err();
        assert!(error.contains(why), "{error}");
        assert_eq!(there.version(), before);
        assert_eq!(there.sent().len(), told_before);
    };
    refused(&|m| m.keyspace = "system".to_owned(), "keyspace system is local to each node");
    refused(
        &|m| drop(m.updates.remove(&schema::SchemaTable::Columns)),
        "No partition key columns found in schema table for t.a",
    );
    refused(
        &|m| {
            let tables = m.updates.get_mut(&schema::SchemaTable::Tables).unwrap();
            let row = tables.rows.values_mut().next().unwrap();
            row.cells.get_mut("id").unwrap().value = Some(vec![1]);
        },
        "column id of system_schema.tables is missing or malformed",
    );
    // rows of another table are no schema
    let local = layouts.table("system", "local").unwrap();
    let update = rows::UpdateBuilder::new(local.id.0, local.layout.clone(), b"t");
    let update = update.finish(&mut rows::RowBuilder::new());
    let error = there.merge(vec![Mutation::new(update)]).unwrap_err();
    assert!(error.contains("describes no schema"), "{error}");
    assert_eq!(there.merge(whole.clone()).unwrap(), here.version());
}

#[test]
fn a_power_cut_leaves_a_schema_of_before_or_after_and_the_rest_is_asked_for_again() {
    let here = Site::watched(1);
    here.run(&[KEYSPACE, "CREATE TABLE t.a (k int PRIMARY KEY, v int)", "CREATE TYPE t.u (f int)"]);
    let (whole, version) = (here.sent(), here.version());
    let mut ends = [0; 2];
    for seed in 0..SEEDS {
        let there = Site::new(100 + seed, 1 + seed as usize % 3);
        let before = there.version();
        let is_acknowledged = Rc::new(Cell::new(false));
        let client = there.serving.borrow().clone().unwrap();
        let (theirs, mutations) = (Rc::clone(&is_acknowledged), whole.clone());
        client.env.clone().spawn(Class::Statement, async move {
            client.node.schema_owner().merge(mutations).await.unwrap();
            theirs.set(true);
        });
        let cut = there.world.rng().below(12_000);
        there.world.run_for(Duration::from_micros(cut)).unwrap();
        there.restart();
        let after = there.version();
        assert!(after == before || after == version, "seed {seed}: {}", TableId(after));
        assert!(after == version || !is_acknowledged.get(), "seed {seed}: it was acknowledged");
        ends[usize::from(after == version)] += 1;
        assert_eq!(there.merge(whole.clone()).unwrap(), version, "seed {seed}");
        assert_eq!(there.version(), version, "seed {seed}");
        there.run(&["INSERT INTO t.a (k, v) VALUES (1, 1)"]);
    }
    assert!(ends.iter().all(|count| *count > 0), "the ends were {ends:?}");
}

#[test]
fn a_node_of_a_ring_of_4_1_asks_for_nothing_that_it_does_not_know() {
    let site = Site::of_release(1, 1, "4.1.10");
    // that of a Cassandra 4.1.10 that is alone and new
    assert_eq!(TableId(site.version()).to_string(), "54e17321-3f2e-37ca-9b08-d91ba7bdd369");
    let said = &site.run(&["SELECT release_version FROM system.local"])[0].1;
    assert_eq!(said[4..], *b"4.1.10");
    site.run(&[KEYSPACE, "CREATE TABLE t.a (k int PRIMARY KEY, v text)"]);
    let version = site.version();
    for statement in [
        "CREATE TABLE t.b (k int PRIMARY KEY, v vector<float, 2>)",
        "ALTER TABLE t.a WITH allow_auto_snapshot = false",
        "ALTER TABLE t.a WITH compaction = {'class': 'UnifiedCompactionStrategy'}",
    ] {
        let error = told(&site.world, &site.serving, async move |client| {
            client.try_run(statement).await.err().unwrap().message
        });
        assert!(error.contains("is not known to Cassandra 4.1"), "{error}");
    }
    assert_eq!(site.version(), version);
    let knows_masks = |sent: &Mutation| {
        let read = SchemaMutation::from_mutation(sent).unwrap();
        read.updates.contains_key(&schema::SchemaTable::ColumnMasks)
    };
    assert!(!site.sent().iter().any(knows_masks));
    // nor are there files that a 4.1 would not open
    told(&site.world, &site.serving, async |client| {
        let schema = client.node.schema();
        assert!(schema.table("system_schema", "column_masks").is_none());
        for (keyspace, table, column) in [
            ("system_schema", "tables", "allow_auto_snapshot"),
            ("system_schema", "views", "incremental_backups"),
            ("system", "compaction_history", "compaction_properties"),
        ] {
            assert!(schema.table(keyspace, table).unwrap().column(column).is_none(), "{column}");
        }
    });
    site.restart();
    assert_eq!(site.version(), version);
}
