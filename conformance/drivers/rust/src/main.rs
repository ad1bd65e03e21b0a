//! The common driver scenario with the unmodified Rust driver (crate `scylla`): driver-scenario
//! HOST PORT [SLOW_HOST].
//!
//! Both hosts fail a read over more than a thousand tombstones; SLOW_HOST acknowledges no write and
//! ends no long read before it times out.
//!
//! It is the driver that asks for shards, appends `USING TIMEOUT` to its metadata queries where
//! they are announced, and speaks protocol v4.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use futures::TryStreamExt;
use futures::future::{join_all, try_join_all};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::DeserializeRow;
use scylla::deserialize::value::DeserializeValue;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError, WriteType};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::PagingState;
use scylla::serialize::value::SerializeValue;
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{
    Counter, CqlDate, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue, MaybeUnset,
};
use scylla::{DeserializeValue, SerializeValue};

const KS: &str = "drv_rust";
/// Where Helenus serves its metrics.
const METRICS_PORT: u16 = 7070;
/// How often to look whether all requests go to their owners.
const SHARD_ROUNDS: usize = 50;
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn ok(name: &str) {
    println!("ok {name}");
}

fn check(condition: bool, what: impl AsRef<str>) -> Outcome {
    if condition { Ok(()) } else { Err(what.as_ref().to_owned().into()) }
}

fn equal<T: PartialEq + Debug>(got: T, want: T, what: &str) -> Outcome {
    check(got == want, format!("{what}: got {got:?}, want {want:?}"))
}

async fn connect(address: &str) -> Outcome<Session> {
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::One)
        .request_timeout(Some(Duration::from_secs(30)))
        .retry_policy(std::sync::Arc::new(FallthroughRetryPolicy::new()))
        .build();
    Ok(SessionBuilder::new()
        .known_node(address)
        .default_execution_profile_handle(profile.into_handle())
        .build()
        .await?)
}

struct Scenario {
    s: Session,
    address: String,
}

impl Scenario {
    async fn run(&self, cql: impl AsRef<str>) -> Outcome {
        self.s.query_unpaged(cql.as_ref(), ()).await?;
        Ok(())
    }

    async fn rows<R>(&self, cql: String) -> Outcome<Vec<R>>
    where
        R: for<'f, 'm> DeserializeRow<'f, 'm>,
    {
        let rows = self.s.query_unpaged(cql, ()).await?.into_rows_result()?;
        let mut out = Vec::new();
        for row in rows.rows::<R>()? {
            out.push(row?);
        }
        Ok(out)
    }

    async fn schema_metadata(&self) -> Outcome {
        self.run(format!("DROP KEYSPACE IF EXISTS {KS}")).await?;
        self.run(format!("CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")).await?;
        self.run(format!("CREATE TYPE {KS}.address (street text, zip int)")).await?;
        self.run(format!(
            "CREATE TABLE {KS}.shape (k1 int, k2 text, c1 timeuuid, c2 int, s text static, a frozen<address>, \
             v map<text, frozen<set<int>>>, PRIMARY KEY ((k1, k2), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)"
        ))
        .await?;
        self.s.refresh_metadata().await?;
        let state = self.s.get_cluster_state();
        let node = &state.get_nodes_info()[0];
        check(node.datacenter.is_some() && node.rack.is_some(), "node without place")?;
        let keyspace = state.get_keyspace(KS).ok_or("no keyspace")?;
        let table = keyspace.tables.get("shape").ok_or("no table")?;
        equal(&table.partition_key[..], &["k1".to_owned(), "k2".to_owned()][..], "partition key")?;
        equal(
            &table.clustering_key[..],
            &["c1".to_owned(), "c2".to_owned()][..],
            "clustering key",
        )?;
        equal(table.columns.len(), 7, "columns")?;
        check(keyspace.user_defined_types.contains_key("address"), "no type")?;
        ok("schema_metadata");
        Ok(())
    }

    async fn prepared(&self) -> Outcome {
        self.run(format!("CREATE TABLE {KS}.p (k int, c int, v text, PRIMARY KEY (k, c))")).await?;
        let insert =
            self.s.prepare(format!("INSERT INTO {KS}.p (k, c, v) VALUES (?, ?, ?)")).await?;
        check(insert.is_token_aware(), "no routing key")?;
        for c in 0..100 {
            self.s.execute_unpaged(&insert, (1, c, format!("v{c}"))).await?;
        }
        let select = self.s.prepare(format!("SELECT v FROM {KS}.p WHERE k = ? AND c >= ?")).await?;
        let result = self.s.execute_unpaged(&select, (1, 97)).await?.into_rows_result()?;
        let got: Vec<String> =
            result.rows::<(String,)>()?.map(|r| r.map(|r| r.0)).collect::<Result<_, _>>()?;
        equal(got, vec!["v97".into(), "v98".into(), "v99".into()], "rows")?;
        self.run(format!("ALTER TABLE {KS}.p ADD later int")).await?;
        let result = self.s.execute_unpaged(&select, (1, 99)).await?.into_rows_result()?;
        equal(result.single_row::<(String,)>()?.0, "v99".to_owned(), "row after ALTER")?;
        ok("prepared");
        Ok(())
    }

    async fn paging(&self) -> Outcome {
        self.run(format!("CREATE TABLE {KS}.pages (k int, c int, v int, PRIMARY KEY (k, c))"))
            .await?;
        let insert =
            self.s.prepare(format!("INSERT INTO {KS}.pages (k, c, v) VALUES (?, ?, ?)")).await?;
        for start in (0..10_000).step_by(100) {
            try_join_all(
                (start..start + 100).map(|n| self.s.execute_unpaged(&insert, (n % 7, n, n * 2))),
            )
            .await?;
        }
        let mut select = self.s.prepare(format!("SELECT k, c, v FROM {KS}.pages")).await?;
        select.set_page_size(100);
        let (mut seen, mut pages, mut state) = (HashSet::new(), 0, PagingState::start());
        loop {
            let (result, next) = self.s.execute_single_page(&select, (), state).await?;
            pages += 1;
            for row in result.into_rows_result()?.rows::<(i32, i32, i32)>()? {
                let (_, c, v) = row?;
                equal(v, c * 2, "value")?;
                seen.insert(c);
            }
            match next.into_paging_control_flow() {
                std::ops::ControlFlow::Break(()) => break,
                std::ops::ControlFlow::Continue(s) => state = s,
            }
        }
        equal(seen.len(), 10_000, "rows")?;
        check((100..=101).contains(&pages), format!("{pages} pages"))?;
        let stream = self.s.execute_iter(select, ()).await?.rows_stream::<(i32, i32, i32)>()?;
        equal(stream.try_fold(0, |n, _| async move { Ok(n + 1) }).await?, 10_000, "streamed rows")?;
        equal(
            self.rows::<(i64,)>(format!("SELECT count(*) FROM {KS}.pages")).await?,
            vec![(10_000,)],
            "count",
        )?;
        ok("paging");
        Ok(())
    }

    async fn batches(&self) -> Outcome {
        self.run(format!("CREATE TABLE {KS}.b (k int PRIMARY KEY, v int)")).await?;
        self.run(format!("CREATE TABLE {KS}.counts (k int PRIMARY KEY, n counter)")).await?;
        let insert = self.s.prepare(format!("INSERT INTO {KS}.b (k, v) VALUES (?, ?)")).await?;
        for (mark, kind) in [(1, BatchType::Logged), (2, BatchType::Unlogged)] {
            let mut batch = Batch::new(kind);
            let mut values = Vec::new();
            for k in 0..10 {
                batch.append_statement(insert.clone());
                values.push((k, mark));
            }
            self.s.batch(&batch, values).await?;
            let rows = self.rows::<(i32,)>(format!("SELECT v FROM {KS}.b")).await?;
            equal(rows.iter().filter(|r| r.0 == mark).count(), 10, "rows of a batch")?;
        }
        let add = self.s.prepare(format!("UPDATE {KS}.counts SET n = n + ? WHERE k = ?")).await?;
        let mut batch = Batch::new(BatchType::Counter);
        let mut values = Vec::new();
        for n in 1..5 {
            batch.append_statement(add.clone());
            values.push((Counter(n), 1));
        }
        self.s.batch(&batch, values).await?;
        let rows =
            self.rows::<(Counter,)>(format!("SELECT n FROM {KS}.counts WHERE k = 1")).await?;
        equal(rows[0].0.0, 10, "counter")?;
        ok("batches");
        Ok(())
    }

    /// Values of one type there and back, then unset (keeps it) and null (removes it).
    async fn round_trip<T>(&self, column: &str, values: Vec<T>) -> Outcome
    where
        T: SerializeValue + for<'f, 'm> DeserializeValue<'f, 'm> + PartialEq + Debug + Clone,
    {
        let insert =
            self.s.prepare(format!("INSERT INTO {KS}.types (k, {column}) VALUES (?, ?)")).await?;
        let select = self.s.prepare(format!("SELECT {column} FROM {KS}.types WHERE k = ?")).await?;
        let read = async || -> Outcome<Option<T>> {
            let result = self.s.execute_unpaged(&select, (1,)).await?.into_rows_result()?;
            Ok(result.single_row::<(Option<T>,)>()?.0)
        };
        for v in &values {
            self.s.execute_unpaged(&insert, (1, v)).await?;
            equal(read().await?, Some(v.clone()), column)?;
        }
        self.s.execute_unpaged(&insert, (1, MaybeUnset::<T>::Unset)).await?;
        equal(read().await?, values.last().cloned(), column)?;
        self.s.execute_unpaged(&insert, (1, None::<T>)).await?;
        equal(read().await?, None, column)
    }

    async fn types(&self) -> Outcome {
        self.run(format!(
            "CREATE TABLE {KS}.types (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double, \
             h duration, i float, j inet, k1 int, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid, \
             t varint, u list<int>, v set<text>, w map<text, int>, x frozen<{KS}.address>, y tuple<int, text, boolean>, z vector<float, 3>)"
        ))
        .await?;
        self.round_trip("a", vec!["x".to_owned(), String::new()]).await?;
        self.round_trip("b", vec![0, i64::MAX, i64::MIN]).await?;
        self.round_trip("c", vec![vec![], vec![0_u8, 255], vec![7; 100_000]]).await?;
        self.round_trip("d", vec![true, false]).await?;
        self.round_trip("e", vec![CqlDate(0), CqlDate(1 << 31), CqlDate(u32::MAX)]).await?;
        let big: num_bigint::BigInt = num_bigint::BigInt::from(1) << 200_u32;
        self.round_trip(
            "f",
            vec![
                bigdecimal::BigDecimal::new((-150).into(), 2),
                bigdecimal::BigDecimal::from_bigint(big.clone(), 5),
            ],
        )
        .await?;
        self.round_trip("g", vec![0.0, -1.5, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY]).await?;
        self.round_trip(
            "h",
            vec![
                CqlDuration { months: 0, days: 0, nanoseconds: 0 },
                CqlDuration { months: -1, days: -2, nanoseconds: -3 },
            ],
        )
        .await?;
        self.round_trip("i", vec![0.0_f32, 1.5, f32::MAX]).await?;
        self.round_trip(
            "j",
            vec!["127.0.0.1".parse::<IpAddr>()?, "2001:db8::ff00:42:8329".parse()?],
        )
        .await?;
        self.round_trip("k1", vec![0, i32::MAX, i32::MIN]).await?;
        self.round_trip("l", vec![0, i16::MAX, i16::MIN]).await?;
        self.round_trip(
            "m",
            vec![String::new(), "caf\u{e9} \u{4e2d} \u{1f600}".to_owned(), "x".repeat(100_000)],
        )
        .await?;
        self.round_trip("n", vec![CqlTime(0), CqlTime(86_399_999_999_999)]).await?;
        self.round_trip("o", vec![CqlTimestamp(0), CqlTimestamp(i64::MAX), CqlTimestamp(i64::MIN)])
            .await?;
        self.round_trip("p", vec!["de3e12ba-e5f0-11f1-a71b-15da588fdeae".parse::<CqlTimeuuid>()?])
            .await?;
        self.round_trip("q", vec![0, i8::MAX, i8::MIN]).await?;
        self.round_trip(
            "r",
            vec![uuid::Uuid::nil(), "6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47".parse()?],
        )
        .await?;
        self.round_trip(
            "t",
            vec![num_bigint::BigInt::from(0), num_bigint::BigInt::from(-129), -big],
        )
        .await?;
        self.round_trip("u", vec![vec![1, 2, 3], vec![5, 5]]).await?;
        self.round_trip("v", vec![vec![String::new(), "a".to_owned(), "z".to_owned()]]).await?;
        self.round_trip("w", vec![BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), -1)])])
            .await?;
        self.round_trip(
            "x",
            vec![
                Address { street: Some("s".into()), zip: Some(1) },
                Address { street: None, zip: Some(2) },
            ],
        )
        .await?;
        self.round_trip(
            "y",
            vec![(Some(1), Some("a".to_owned()), Some(true)), (None, Some("a".to_owned()), None)],
        )
        .await?;
        self.round_trip("z", vec![vec![1.0_f32, -2.5, 0.0]]).await?;
        ok("types");
        Ok(())
    }

    /// The value of no bytes, of every type that has one, is neither null nor lost; empty
    /// collections are.
    async fn empty_values(&self) -> Outcome {
        let scalars = [
            "ascii",
            "bigint",
            "blob",
            "boolean",
            "decimal",
            "double",
            "float",
            "inet",
            "int",
            "text",
            "timestamp",
            "timeuuid",
            "uuid",
            "varint",
        ];
        let columns: Vec<String> = scalars.iter().map(|t| format!("{t}_ {t}")).collect();
        self.run(format!(
            "CREATE TABLE {KS}.empties (k int PRIMARY KEY, {}, l list<int>, fl frozen<list<int>>, fm frozen<map<int, int>>, \
             t tuple<int, text>)",
            columns.join(", ")
        ))
        .await?;
        for t in scalars {
            let term = if t == "blob" { "0x".to_owned() } else { format!("blobAs{t}(0x)") };
            self.run(format!("INSERT INTO {KS}.empties (k, {t}_) VALUES (1, {term})")).await?;
            let rows = self
                .rows::<(Option<CqlValue>,)>(format!("SELECT {t}_ FROM {KS}.empties WHERE k = 1"))
                .await?;
            let want = match t {
                "ascii" => CqlValue::Ascii(String::new()),
                "text" => CqlValue::Text(String::new()),
                "blob" => CqlValue::Blob(Vec::new()),
                _ => CqlValue::Empty,
            };
            equal(&rows, &vec![(Some(want),)], t)?;
        }
        let insert = self
            .s
            .prepare(format!("INSERT INTO {KS}.empties (k, l, fl, fm, t) VALUES (3, ?, ?, ?, ?)"))
            .await?;
        type Empties = (
            Option<Vec<i32>>,
            Option<Vec<i32>>,
            Option<BTreeMap<i32, i32>>,
            (Option<i32>, Option<String>),
        );
        let empty: Empties = (Some(vec![]), Some(vec![]), Some(BTreeMap::new()), (None, None));
        self.s.execute_unpaged(&insert, &empty).await?;
        let rows = self
            .rows::<Empties>(format!("SELECT l, fl, fm, t FROM {KS}.empties WHERE k = 3"))
            .await?;
        equal(rows, vec![(None, empty.1, empty.2, empty.3)], "empty collections")?;
        ok("empty_values");
        Ok(())
    }

    async fn fails(&self, statement: impl Into<Statement>) -> Outcome<DbError> {
        match self.s.query_unpaged(statement, ()).await {
            Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(e, _))) => Ok(e),
            Err(e) => Err(e.into()),
            Ok(_) => Err("a statement did not fail".into()),
        }
    }

    async fn errors(&self) -> Outcome {
        check(matches!(self.fails("SELEKT * FROM x").await?, DbError::SyntaxError), "syntax")?;
        check(
            matches!(self.fails(format!("SELECT nosuch FROM {KS}.b")).await?, DbError::Invalid),
            "invalid",
        )?;
        check(
            matches!(self.fails(format!("SELECT * FROM {KS}.nosuch")).await?, DbError::Invalid),
            "no table",
        )?;
        let e = self.fails(format!("CREATE TABLE {KS}.b (k int PRIMARY KEY)")).await?;
        check(
            matches!(&e, DbError::AlreadyExists { keyspace, table } if keyspace == KS && table == "b"),
            format!("{e:?}"),
        )?;
        let e =
            self.fails("CREATE KEYSPACE drv_bad WITH replication = {'class': 'NoSuch'}").await?;
        check(matches!(e, DbError::ConfigError), "config")?;
        let e = self
            .fails(format!("CREATE TABLE {KS}.bad (k int PRIMARY KEY) WITH gc_grace_seconds = -1"))
            .await?;
        check(matches!(e, DbError::ConfigError), "config of a table")?;
        self.run("DROP KEYSPACE IF EXISTS drv_rust3").await?;
        self.run("CREATE KEYSPACE drv_rust3 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}").await?;
        self.run("CREATE TABLE drv_rust3.t (k int PRIMARY KEY, v int)").await?;
        for cql in [
            "INSERT INTO drv_rust3.t (k, v) VALUES (1, 1)",
            "SELECT * FROM drv_rust3.t WHERE k = 1",
        ] {
            let mut statement = Statement::new(cql);
            statement.set_consistency(Consistency::Three);
            let e = self.fails(statement).await?;
            check(
                matches!(
                    e,
                    DbError::Unavailable { consistency: Consistency::Three, required: 3, alive: 1 }
                ),
                format!("unavailable: {e:?}"),
            )?;
        }
        self.run("DROP KEYSPACE drv_rust3").await?;
        let e = self.fails(format!("CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")).await?;
        check(
            matches!(&e, DbError::AlreadyExists { keyspace, table } if keyspace == KS && table.is_empty()),
            format!("{e:?}"),
        )?;
        let e = self.fails("DROP TABLE system.local").await?;
        check(matches!(e, DbError::Unauthorized), "unauthorized")?;
        ok("errors");
        Ok(())
    }

    /// A read over too many tombstones warns, and one over far too many fails.
    async fn tombstones(&self) -> Outcome {
        self.run(format!("CREATE TABLE {KS}.graves (k int, c int, v int, PRIMARY KEY (k, c))"))
            .await?;
        let delete =
            self.s.prepare(format!("DELETE FROM {KS}.graves WHERE k = ? AND c = ?")).await?;
        for (k, count) in [(1, 200), (2, 1200)] {
            try_join_all((0..count).map(|c| self.s.execute_unpaged(&delete, (k, c)))).await?;
        }
        let result =
            self.s.query_unpaged(format!("SELECT * FROM {KS}.graves WHERE k = 1"), ()).await?;
        let warnings: Vec<&str> = result.warnings().collect();
        check(warnings.iter().any(|w| w.contains("200 tombstone cells")), format!("{warnings:?}"))?;
        let e = self.fails(format!("SELECT * FROM {KS}.graves WHERE k = 2")).await?;
        check(
            matches!(
                e,
                DbError::ReadFailure {
                    consistency: Consistency::One,
                    received: 0,
                    required: 1,
                    numfailures: 1,
                    data_present: false
                }
            ),
            format!("read failure: {e:?}"),
        )?;
        ok("tombstones");
        Ok(())
    }

    /// The slow server writes, and says so too late.
    async fn timeouts(&self) -> Outcome {
        self.run(format!("CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")).await?;
        self.run(format!("CREATE TABLE {KS}.t (k int PRIMARY KEY, v text)")).await?;
        let insert = self.s.prepare(format!("INSERT INTO {KS}.t (k, v) VALUES (?, ?)")).await?;
        let value = "\\".repeat(20_000);
        let writes = (0..1000).map(|k| self.s.execute_unpaged(&insert, (k, &value)));
        let mut late = 0;
        for result in join_all(writes).await {
            // in time if it came right before the log was synced
            let Err(e) = result else { continue };
            check(
                matches!(
                    &e,
                    ExecutionError::LastAttemptError(RequestAttemptError::DbError(
                        DbError::WriteTimeout {
                            consistency: Consistency::One,
                            received: 0,
                            required: 1,
                            write_type: WriteType::Simple
                        },
                        _
                    ))
                ),
                format!("write timeout: {e:?}"),
            )?;
            late += 1;
        }
        check(late > 0, "all writes in time")?;
        let long = format!("{}v{}", "toJson(".repeat(5), ")".repeat(5));
        let e = self.fails(format!("SELECT count({long}) FROM {KS}.t")).await?;
        check(
            matches!(
                e,
                DbError::ReadTimeout {
                    consistency: Consistency::One,
                    received: 0,
                    required: 1,
                    data_present: false
                }
            ),
            format!("read timeout: {e:?}"),
        )?;
        let rows = self.rows::<(i32,)>(format!("SELECT k FROM {KS}.t WHERE k = 7")).await?;
        equal(rows, vec![(7,)], "what timed out and was written")?;
        self.run(format!("DROP KEYSPACE {KS}")).await?;
        ok("timeouts");
        Ok(())
    }

    async fn unprepared(&self) -> Outcome {
        self.run(format!("CREATE TABLE {KS}.again (k int PRIMARY KEY, v int)")).await?;
        let insert = self.s.prepare(format!("INSERT INTO {KS}.again (k, v) VALUES (?, ?)")).await?;
        self.s.execute_unpaged(&insert, (1, 1)).await?;
        self.run(format!("DROP TABLE {KS}.again")).await?;
        self.run(format!("CREATE TABLE {KS}.again (k int PRIMARY KEY, v int)")).await?;
        self.s.execute_unpaged(&insert, (2, 2)).await?;
        equal(
            self.rows::<(i32, i32)>(format!("SELECT k, v FROM {KS}.again")).await?,
            vec![(2, 2)],
            "rows",
        )?;
        ok("unprepared");
        Ok(())
    }

    /// Where the server announces shards, each request goes over a connection of the shard that
    /// owns its key: the server's metrics tell how many arrived elsewhere.
    async fn shards(&self) -> Outcome {
        let state = self.s.get_cluster_state();
        let Some(sharder) = state.get_nodes_info()[0].sharder() else {
            println!("no shards are announced");
            return Ok(());
        };
        self.run(format!("CREATE TABLE {KS}.sharded (k int PRIMARY KEY, v int)")).await?;
        self.s.await_schema_agreement().await?;
        let insert =
            self.s.prepare(format!("INSERT INTO {KS}.sharded (k, v) VALUES (?, ?)")).await?;
        let select = self.s.prepare(format!("SELECT v FROM {KS}.sharded WHERE k = ?")).await?;
        // Connections to the other shards are opened in the background: it may take a few rounds.
        let mut arrived = (0, 0);
        for _ in 0..SHARD_ROUNDS {
            let before = partitions(&self.address)?;
            try_join_all((0..500).map(|k| self.s.execute_unpaged(&insert, (k, k)))).await?;
            try_join_all((0..500).map(|k| self.s.execute_unpaged(&select, (k,)))).await?;
            let after = partitions(&self.address)?;
            arrived = (after.0 - before.0, after.1 - before.1);
            if arrived == (1000, 0) {
                ok(&format!("shards: {}", sharder.nr_shards));
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("{} requests to owners, {} to other shards", arrived.0, arrived.1).into())
    }

    /// This driver acts on no schema event; a session agrees on the schema and reads it anew.
    async fn schema_agreement(&self) -> Outcome {
        let watcher = connect(&self.address).await?;
        self.run(format!("CREATE TABLE {KS}.announced (k int PRIMARY KEY)")).await?;
        let ours = self.s.await_schema_agreement().await?;
        equal(watcher.await_schema_agreement().await?, ours, "schema version")?;
        watcher.refresh_metadata().await?;
        let state = watcher.get_cluster_state();
        check(
            state.get_keyspace(KS).is_some_and(|k| k.tables.contains_key("announced")),
            "no table in the metadata",
        )?;
        ok("schema_agreement");
        Ok(())
    }
}

/// Partitions asked of their owners, and of other shards, as the server's metrics count them over
/// all shards.
fn partitions(address: &str) -> Outcome<(u64, u64)> {
    let host = address.rsplit_once(':').ok_or("no port")?.0;
    let mut stream = TcpStream::connect((host, METRICS_PORT)).map_err(|e| {
        format!("no metrics on {host}:{METRICS_PORT} ({e}): --set metrics_address={host}")
    })?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let sum = |name: &str| -> Outcome<u64> {
        let mut lines = text.lines().filter(|line| line.starts_with(name)).peekable();
        check(lines.peek().is_some(), format!("no {name} among the metrics"))?;
        let values = lines.map(|line| line.rsplit_once(' ').map_or("", |parts| parts.1));
        Ok(values.map(str::parse::<f64>).sum::<Result<f64, _>>()? as u64)
    };
    Ok((
        sum("cassandra_coordinator_ownpartitions_total")?,
        sum("cassandra_coordinator_otherpartitions_total")?,
    ))
}

#[derive(Clone, Debug, PartialEq, SerializeValue, DeserializeValue)]
struct Address {
    street: Option<String>,
    zip: Option<i32>,
}

#[tokio::main]
async fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let (host, port) = (args.next().ok_or("HOST PORT")?, args.next().ok_or("HOST PORT")?);
    let address = format!("{host}:{port}");
    let x = Scenario { s: connect(&address).await?, address };
    x.schema_metadata().await?;
    x.prepared().await?;
    x.paging().await?;
    x.batches().await?;
    x.types().await?;
    x.empty_values().await?;
    x.errors().await?;
    x.tombstones().await?;
    x.unprepared().await?;
    x.schema_agreement().await?;
    x.shards().await?;
    x.run(format!("DROP KEYSPACE {KS}")).await?;
    ok("protocol v4");
    if let Some(slow) = args.next() {
        let address = format!("{slow}:{port}");
        Scenario { s: connect(&address).await?, address }.timeouts().await?;
    }
    Ok(())
}
