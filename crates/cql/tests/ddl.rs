//! Statements that a live Cassandra 5.0.9 executed (`testdata/ddl/capture.py`): schema changes,
//! USE, TRUNCATE, DESCRIBE. The same errors, warnings, changes, names, texts and pages come out
//! here.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ddl::{check_truncate, check_use};
use cql::describe::{Cluster, Describe, DescribeContext};
use cql::permission::Need;
use cql::{CqlError, ParseError, Plan, Prepared, parse, prepare};
use schema::{
    ChangeKind, ChangeOptions, ColumnKind, Keyspace, Release, Replication, Schema, SchemaCell,
    SchemaEvent, SchemaMutation, SchemaRow, SchemaRows, SchemaState, SchemaTable, Table, TableId,
    TableKind, Target,
};
use serde_json::{Value, json};
use types::CqlType;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn text(row: &Value, column: &str) -> String {
    String::from_utf8(unhex(row[column].as_str().unwrap())).unwrap()
}

fn clustering(table: SchemaTable) -> &'static [&'static str] {
    match table {
        SchemaTable::Keyspaces => &[],
        SchemaTable::Tables => &["table_name"],
        SchemaTable::Columns | SchemaTable::DroppedColumns | SchemaTable::ColumnMasks => {
            &["table_name", "column_name"]
        }
        SchemaTable::Triggers => &["table_name", "trigger_name"],
        SchemaTable::Types => &["type_name"],
        SchemaTable::Functions => &["function_name", "argument_types"],
        SchemaTable::Aggregates => &["aggregate_name", "argument_types"],
        SchemaTable::Indexes => &["table_name", "index_name"],
        SchemaTable::Views => &["view_name"],
    }
}

/// Nothing here expires.
const NOW: i64 = 0;

fn stored_row(table: SchemaTable, row: &Value) -> (Vec<Vec<u8>>, SchemaRow) {
    let value = |value: &Value| unhex(value.as_str().unwrap());
    let key = clustering(table).iter().map(|name| value(&row[*name])).collect();
    let mut stored = SchemaRow { liveness: Some(rows::Liveness::new(1)), ..SchemaRow::default() };
    for (name, cell) in row.as_object().unwrap() {
        if name != "keyspace_name" && !clustering(table).contains(&name.as_str()) {
            stored.cells.insert(name.clone(), SchemaCell::live(1, value(cell)));
        }
    }
    (key, stored)
}

fn stored_rows(start: &Value) -> SchemaRows {
    let mut rows = SchemaRows::new();
    for table in SchemaTable::ALL {
        for row in start[format!("system_schema.{}", table.name())].as_array().unwrap() {
            let keyspace = text(row, "keyspace_name");
            let mut mutation = SchemaMutation { keyspace, ..SchemaMutation::default() };
            let (key, stored) = stored_row(table, row);
            mutation.updates.entry(table).or_default().rows.insert(key, stored);
            rows.apply(&mutation);
        }
    }
    rows
}

fn virtual_table(start: &Value, keyspace: &str, table: &Value) -> Table {
    let name = text(table, "table_name");
    let id = TableId::of_system_table(keyspace, &name);
    let mut builder = Table::builder(keyspace, name.clone(), id).kind(TableKind::Virtual);
    builder.params.comment = text(table, "comment");
    let columns = start["system_virtual_schema.columns"].as_array().unwrap().iter();
    let mut columns: Vec<&Value> = columns
        .filter(|c| text(c, "keyspace_name") == keyspace && text(c, "table_name") == name)
        .collect();
    columns.sort_by_key(|c| unhex(c["position"].as_str().unwrap()));
    for column in columns {
        let ty = CqlType::parse_cql_name(&text(column, "type"), &mut |_, _| None).unwrap();
        let kind = ColumnKind::parse(&text(column, "kind")).unwrap();
        let descends = text(column, "clustering_order") == "desc";
        builder.add(&text(column, "column_name"), ty, kind, descends, None);
    }
    builder.build()
}

fn virtual_keyspaces(start: &Value) -> Vec<Arc<Keyspace>> {
    let rows = |name: &str| start[format!("system_virtual_schema.{name}")].as_array().unwrap();
    let mut found = Vec::new();
    for row in rows("keyspaces") {
        let mut keyspace = Keyspace::new(text(row, "keyspace_name"), true, Replication::local());
        keyspace.is_virtual = true;
        for table in rows("tables").iter().filter(|t| text(t, "keyspace_name") == keyspace.name) {
            let table = virtual_table(start, &keyspace.name, table);
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
        }
        found.push(Arc::new(keyspace));
    }
    found
}

fn state(start: &Value) -> SchemaState {
    let rows = stored_rows(start);
    let mut local = virtual_keyspaces(start);
    for name in ["system", "system_schema"] {
        local.push(Arc::new(rows.keyspace(name, NOW).unwrap().unwrap()));
    }
    SchemaState::new(rows, local, Release::V5_0, NOW).unwrap()
}

fn error(error: &CqlError) -> Value {
    let (code, detail) = match error {
        CqlError::Syntax(_) => (0x2000, None),
        CqlError::Unauthorized(_) => (0x2100, None),
        CqlError::Invalid(_) | CqlError::CannotPage => (0x2200, None),
        CqlError::Config(_) => (0x2300, None),
        CqlError::AlreadyExists { keyspace, table, .. } => (0x2400, Some(json!([keyspace, table]))),
        CqlError::Function { keyspace, name, arguments, .. } => {
            (0x1400, Some(json!([keyspace, name, arguments])))
        }
    };
    let mut answer = json!({"err": [code, error.to_string()]});
    if let Some(detail) = detail {
        answer["detail"] = detail;
    }
    answer
}

fn change(event: SchemaEvent) -> Value {
    let kind = match event.kind {
        ChangeKind::Created => "CREATED",
        ChangeKind::Updated => "UPDATED",
        ChangeKind::Dropped => "DROPPED",
    };
    match event.target {
        Target::Keyspace => json!([kind, "KEYSPACE", event.keyspace]),
        Target::Table(name) => json!([kind, "TABLE", event.keyspace, name]),
        Target::Type(name) => json!([kind, "TYPE", event.keyspace, name]),
        _ => unreachable!(),
    }
}

fn ownership(_keyspace: &str) -> Vec<(String, Vec<String>)> {
    vec![("20".to_owned(), vec!["/1:7".to_owned()]), ("-100".to_owned(), vec![])]
}

/// All pages of a DESCRIBE, in the shape of the capture.
fn described(
    describe: &Describe,
    schema: &Schema,
    keyspace: Option<&str>,
    page_size: Option<i32>,
) -> Result<Value, CqlError> {
    let cluster = Cluster {
        name: "peer",
        partitioner: "org.apache.cassandra.dht.Murmur3Partitioner",
        snitch: "org.apache.cassandra.locator.DynamicEndpointSnitch",
        ownership: &ownership,
    };
    let mut pages: Vec<Value> = Vec::new();
    let mut at: Option<Vec<u8>> = None;
    loop {
        let page = at.as_deref();
        let release_version = "5.0.9";
        let cluster = &cluster;
        let context =
            DescribeContext { schema, keyspace, cluster, release_version, page_size, page };
        let page = describe.run(&context)?;
        let columns = page.columns.iter().map(|c| {
            let ty = c.ty.to_string().replace("text", "varchar");
            json!([*c.keyspace, *c.table, *c.name, ty])
        });
        let columns: Vec<Value> = columns.collect();
        let rows = page.rows.iter().map(|row| {
            let cell = |(value, column): (&Vec<u8>, &cql::ResultColumn)| match column.ty {
                CqlType::Text => String::from_utf8(value.clone()).unwrap(),
                _ => hex(value),
            };
            json!(row.iter().zip(&*page.columns).map(cell).collect::<Vec<_>>())
        });
        let mut answer = json!({"columns": columns, "rows": rows.collect::<Vec<_>>()});
        if let Some(next) = &page.next_page {
            // as the server frames it in v4 and v5
            answer["paging_state"] = json!(format!("21{}00f07ffffffff07fffffff", hex(next)));
        }
        pages.push(answer);
        at = page.next_page;
        if at.is_none() {
            return Ok(if page_size.is_some() { json!({"pages": pages}) } else { pages.remove(0) });
        }
    }
}

struct Run {
    state: SchemaState,
    options: ChangeOptions,
}

impl Run {
    fn prepare(&self, cql: &str, keyspace: Option<&str>) -> Result<Prepared, CqlError> {
        let parsed = parse(cql).map_err(|error| match error {
            ParseError::Syntax(error) => CqlError::Syntax(error.message),
            ParseError::Invalid(message) => CqlError::Invalid(message),
        })?;
        prepare(&parsed, keyspace, self.state.schema())
    }

    /// What AllowAllAuthenticator and AllowAllAuthorizer leave of the needs.
    fn authorize(prepared: &Prepared) -> Result<(), CqlError> {
        for need in &prepared.needs {
            // whatever the roles: nobody has a name
            if matches!(need, Need::OnRole(..) | Need::Held(..) | Need::AsRolesStand) {
                let text = "You have to be logged in and not anonymous to perform this request";
                return Err(CqlError::Unauthorized(text.to_owned()));
            }
            // ours alone: Cassandra lets everybody truncate what its roles are in
            if !matches!(need, Need::Permission(cql::ast::Permission::Modify, _)) {
                need.refused_to_all()?;
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        cql: &str,
        keyspace: Option<&str>,
        page_size: Option<i32>,
    ) -> Result<Value, CqlError> {
        let prepared = self.prepare(cql, keyspace)?;
        Self::authorize(&prepared)?;
        let schema: Arc<Schema> = Arc::clone(self.state.schema());
        match prepared.plan {
            Plan::Use(name) => check_use(&name, &schema).map(|()| json!({"use": name})),
            Plan::Truncate(table) => check_truncate(&table).map(|()| json!({"void": true})),
            Plan::Role(_) => unreachable!("nobody has a name"),
            Plan::Describe(describe) => described(&describe, &schema, keyspace, page_size),
            Plan::Schema(ddl) => {
                let Some(wanted) = ddl.change(&schema, &self.options)? else {
                    return Ok(json!({"void": true}));
                };
                let applied = self.state.change(&wanted, 2, TableId([7; 16]), &self.options)?;
                let mut answer = match applied.event {
                    Some(event) => json!({"change": change(event)}),
                    None => json!({"void": true}),
                };
                if !applied.warnings.is_empty() {
                    answer["warn"] = json!(applied.warnings);
                }
                Ok(answer)
            }
            _ => panic!("{cql}"),
        }
    }

    /// PREPARE alone: how many markers and columns there are.
    fn prepare_only(&self, cql: &str, keyspace: Option<&str>) -> Result<Value, CqlError> {
        let own = self.prepare(cql, keyspace)?;
        let names = |count: usize| vec![Value::Null; count];
        let result = own.result.map_or(0, |columns| columns.len());
        Ok(json!({"prepared": {"bind": names(own.variables.len()), "result": names(result)}}))
    }
}

/// Replaces what follows `mark` up to `end` by a star: what is drawn anew on each node.
fn blank(text: &str, mark: &str, end: &str) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let rest = &part[part.find(end).unwrap_or(part.len())..];
        out = format!("{out}{mark}*{rest}");
    }
    out
}

fn normal(answer: &Value) -> Value {
    match answer {
        Value::String(text) => {
            let text = blank(text, "\n) WITH ID = ", "\n");
            let text = blank(&text, "USING TIMESTAMP ", ";");
            // the version of the schema in a paging state is that of another node
            let state = text.strip_prefix("2100010005352e302e39").map(|state| &state[32..]);
            json!(state.map_or(text.clone(), |state| format!("paging {state}")))
        }
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), normal(value))).collect())
        }
        other => other.clone(),
    }
}

/// Runs what was captured; the number of statements.
fn run(golden: &str) -> usize {
    let mut lines = golden.lines();
    let start: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let mut run = Run { state: state(&start), options: ChangeOptions::default() };
    let (mut count, mut failures) = (0, Vec::new());
    for line in lines {
        count += 1;
        let theirs: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        failures.extend(step(&mut run, theirs));
    }
    assert!(failures.is_empty(), "{} of {count}\n{}", failures.len(), failures.join("\n"));
    count
}

fn step(run: &mut Run, mut theirs: BTreeMap<String, Value>) -> Option<String> {
    let cql = theirs.remove("cql").unwrap().as_str().unwrap().to_owned();
    let keyspace = theirs.remove("keyspace").unwrap().as_str().map(str::to_owned);
    let page = theirs.remove("page").and_then(|page| i32::try_from(page.as_i64().unwrap()).ok());
    let ours = if theirs.remove("prepare").is_some() {
        // the session is told once that it should not both USE and PREPARE
        theirs.remove("warn");
        run.prepare_only(&cql, keyspace.as_deref())
    } else {
        run.run(&cql, keyspace.as_deref(), page)
    };
    let mut ours = ours.unwrap_or_else(|e| error(&e));
    // an error of Cassandra's own making: any will do
    if theirs.get("err").is_some_and(|error| error[0] == 0) && ours.get("err").is_some() {
        return None;
    }
    let mut theirs: Value = theirs.into_iter().collect::<serde_json::Map<_, _>>().into();
    for answer in [&mut theirs, &mut ours] {
        // the ranges of that node are its own
        let ranges = answer.pointer_mut("/rows/0/3").filter(|_| cql == "DESCRIBE CLUSTER");
        if let Some(ranges) = ranges {
            *ranges = json!("ranges");
        }
    }
    let (ours, theirs) = (normal(&ours), normal(&theirs));
    (ours != theirs).then(|| format!("{cql}\n  {}", difference(&ours, &theirs)))
}

fn difference(ours: &Value, theirs: &Value) -> String {
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).filter(|(a, b)| a != b);
            pairs.map(|(a, b)| difference(a, b)).take(3).collect::<Vec<_>>().join("\n  ")
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            let pairs = a.iter().filter(|(key, value)| b[*key] != **value);
            let pairs = pairs.map(|(key, value)| format!("{key}: {}", difference(value, &b[key])));
            pairs.collect::<Vec<_>>().join("\n  ")
        }
        _ => {
            let clip = |value: &Value| value.to_string().chars().take(1500).collect::<String>();
            format!("ours {}\n  theirs {}", clip(ours), clip(theirs))
        }
    }
}

#[test]
fn statements_on_a_default_node_are_answered_as_by_cassandra() {
    assert!(run(include_str!("../testdata/ddl/ddl.jsonl")) >= 440);
}

#[test]
fn what_other_nodes_made_is_described_as_by_cassandra() {
    assert!(run(include_str!("../testdata/ddl/inherited.jsonl")) >= 75);
}

#[test]
fn indexes_are_refused_as_by_cassandra() {
    assert!(run(include_str!("../testdata/ddl/index.jsonl")) >= 40);
}

#[test]
fn an_index_is_named_shown_and_dropped_as_by_cassandra() {
    let mut run = small_state();
    let mut ok =
        |cql: &str| run.run(cql, Some("inh"), None).unwrap_or_else(|e| panic!("{cql}: {e}"));
    ok("CREATE TABLE \"Odd_t\" (k int, c int, \"V\" int, m map<int, int>, PRIMARY KEY (k, c))");
    let changed = json!({"change": ["UPDATED", "TABLE", "inh", "Odd_t"]});
    for (create, index, target) in [
        ("CREATE INDEX ON \"Odd_t\" (\"V\")", "\"Odd_t_V_idx\"", "\"V\""),
        ("CREATE INDEX ON \"Odd_t\" (m)", "\"Odd_t_m_idx\"", "values(m)"),
        ("CREATE INDEX ON \"Odd_t\" (keys(m))", "\"Odd_t_m_idx_1\"", "keys(m)"),
        (
            "CREATE INDEX ON \"Odd_t\" (entries(m)) USING 'legacy_local_table'",
            "\"Odd_t_m_idx_2\"",
            "entries(m)",
        ),
        ("CREATE INDEX i ON \"Odd_t\" (c)", "i", "c"),
    ] {
        assert_eq!(ok(create), changed, "{create}");
        let shown = ok(&format!("DESCRIBE INDEX {index}")).to_string();
        let wanted = format!("CREATE INDEX {index} ON inh.\"Odd_t\" ({target});");
        assert!(shown.contains(&wanted.replace('"', "\\\"")), "{shown}");
    }
    let nothing = json!({"void": true});
    assert_eq!(ok("CREATE INDEX IF NOT EXISTS other ON \"Odd_t\" (c)"), nothing);
    assert_eq!(ok("CREATE INDEX IF NOT EXISTS i ON \"Odd_t\" (\"V\")"), nothing);
    assert_eq!(ok("DROP INDEX i"), changed);
    assert_eq!(ok("DROP INDEX IF EXISTS i"), nothing);
    let mut refused = |cql: &str| run.run(cql, Some("inh"), None).unwrap_err().to_string();
    let text = refused("CREATE INDEX other ON \"Odd_t\" (values(m))");
    assert_eq!(text, "Index other is a duplicate of existing index Odd_t_m_idx");
    assert_eq!(refused("CREATE INDEX \"a b\" ON \"Odd_t\" (c)"), "Illegal index name a b");
    let text = refused("ALTER TABLE \"Odd_t\" DROP m");
    assert!(
        text.ends_with("dependent secondary indexes (Odd_t_m_idx, Odd_t_m_idx_1, Odd_t_m_idx_2)"),
        "{text}"
    );
    let text = refused("CREATE CUSTOM INDEX ON \"Odd_t\" (c) USING 'sai'");
    assert_eq!(text, "An index of class 'sai' is not supported yet");
}

fn small_state() -> Run {
    let golden = include_str!("../testdata/ddl/inherited.jsonl");
    let start: Value = serde_json::from_str(golden.lines().next().unwrap()).unwrap();
    Run { state: state(&start), options: ChangeOptions::default() }
}

/// One page of DESCRIBE TABLES.
fn page(
    schema: &Schema,
    size: i32,
    at: Option<&[u8]>,
    release: &str,
) -> Result<cql::describe::Described, CqlError> {
    let parsed = parse("DESCRIBE TABLES").unwrap();
    let Plan::Describe(describe) = prepare(&parsed, None, schema).unwrap().plan else { panic!() };
    let cluster = Cluster { name: "", partitioner: "", snitch: "", ownership: &ownership };
    describe.run(&DescribeContext {
        schema,
        keyspace: None,
        cluster: &cluster,
        release_version: release,
        page_size: Some(size),
        page: at,
    })
}

#[test]
fn pages_of_any_size_make_up_the_whole() {
    let run = small_state();
    let schema = run.state.schema();
    let whole = page(schema, 0, None, "5.0.9").unwrap();
    assert!(whole.next_page.is_none() && whole.rows.len() > 90);
    for size in [1, 2, 7, 50, 1000] {
        let (mut rows, mut at) = (Vec::new(), None);
        loop {
            let part = page(schema, size, at.as_deref(), "5.0.9").unwrap();
            rows.extend(part.rows);
            at = part.next_page;
            if at.is_none() {
                break;
            }
        }
        assert_eq!(rows, whole.rows);
    }
}

#[test]
fn a_ring_of_4_1_is_told_of_its_own_options() {
    let run = small_state();
    let schema = run.state.schema();
    let parsed = parse("DESCRIBE TABLE system_auth.roles").unwrap();
    let Plan::Describe(describe) = prepare(&parsed, None, schema).unwrap().plan else { panic!() };
    let cluster = Cluster { name: "", partitioner: "", snitch: "", ownership: &ownership };
    let told = |release_version| {
        let context = DescribeContext {
            schema,
            keyspace: None,
            cluster: &cluster,
            release_version,
            page_size: None,
            page: None,
        };
        let rows = describe.run(&context).unwrap().rows;
        String::from_utf8(rows[0][3].clone()).unwrap()
    };
    let (older, newer) = (told("4.1.10"), told("5.0.9"));
    let of_5_0 = ["    AND allow_auto_snapshot = true\n", "    AND incremental_backups = true\n"];
    assert_eq!(of_5_0.iter().fold(newer.clone(), |text, option| text.replace(option, "")), older);
    assert!(of_5_0.iter().all(|option| newer.contains(option)), "{newer}");
}

#[test]
fn a_page_of_another_schema_release_or_form_is_refused() {
    let mut run = small_state();
    let schema = Arc::clone(run.state.schema());
    let state = page(&schema, 3, None, "5.0.9").unwrap().next_page.unwrap();
    let refused = |schema: &Schema, state: &[u8], release: &str| {
        page(schema, 3, Some(state), release).unwrap_err().to_string()
    };
    for cut in 0..state.len() {
        let text = refused(&schema, &state[..cut], "5.0.9");
        assert_eq!(text, "Invalid paging state.");
    }
    let mut other = state.clone();
    other[1] = 2;
    assert_eq!(refused(&schema, &other, "5.0.9"), "Incompatible paging state");
    assert_eq!(
        refused(&schema, &state, "5.0.10"),
        "The server version of the paging state 5.0.9 is different from the one of the server 5.0.10"
    );
    run.run("CREATE TABLE inh.more (k int PRIMARY KEY)", None, None).unwrap();
    let text = refused(run.state.schema(), &state, "5.0.9");
    assert!(text.starts_with("The schema has changed since the previous page"), "{text}");
    // no row is past the last
    let mut far = state.clone();
    let at = far.len() - 8;
    far[at..].copy_from_slice(&i64::MAX.to_be_bytes());
    assert!(page(&schema, 3, Some(&far), "5.0.9").unwrap().rows.is_empty());
    far[at..].copy_from_slice(&(-1_i64).to_be_bytes());
    assert_eq!(page(&schema, 3, Some(&far), "5.0.9").unwrap().rows.len(), 3);
}

/// The needs of a statement, as text.
fn needs(run: &Run, cql: &str) -> Vec<String> {
    let parsed = parse(cql).unwrap();
    let scope = cql::Scope::new(run.state.schema(), Some("inh"));
    let needs = cql::permission::needs(&parsed.statement, &scope).unwrap();
    let text = |need: &Need| match need {
        Need::Permission(permission, resource) => {
            let name = cql::permission::permission_name(*permission);
            format!("{name} {}", cql::permission::Shown(resource))
        }
        Need::Held(permission, resource) => {
            let name = cql::permission::permission_name(*permission);
            format!("held {name} {}", cql::permission::Shown(resource))
        }
        other => format!("{other:?}"),
    };
    needs.iter().map(text).collect()
}

#[test]
fn statements_need_what_they_touch() {
    let run = small_state();
    for (cql, expected) in [
        ("USE system", vec!["Login"]),
        ("DESCRIBE SCHEMA", vec![]),
        ("SELECT * FROM base", vec!["SELECT <table inh.base>"]),
        ("SELECT * FROM view_w", vec!["SELECT <table inh.base>"]),
        ("SELECT * FROM system.local", vec!["SELECT <table system.local>"]),
        ("INSERT INTO dropped (k, c) VALUES (1, 1)", vec!["MODIFY <table inh.dropped>"]),
        (
            "INSERT INTO dropped (k, c) VALUES (1, 1) IF NOT EXISTS",
            vec!["MODIFY <table inh.dropped>", "SELECT <table inh.dropped>"],
        ),
        (
            "DELETE FROM base WHERE k = 1",
            vec!["MODIFY <table inh.base>", "SELECT <table inh.base>", "MODIFY <table inh.view_w>"],
        ),
        (
            "BEGIN BATCH UPDATE dropped SET z = 1 WHERE k = 1 AND c = 1 IF z = 2; \
             DELETE FROM dropped WHERE k = 2; APPLY BATCH",
            vec![
                "MODIFY <table inh.dropped>",
                "SELECT <table inh.dropped>",
                "MODIFY <table inh.dropped>",
            ],
        ),
        ("TRUNCATE base", vec!["MODIFY <table inh.base>"]),
        (
            "CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy'}",
            vec!["CREATE <all keyspaces>"],
        ),
        ("ALTER KEYSPACE inh WITH durable_writes = true", vec!["ALTER <keyspace inh>"]),
        ("DROP KEYSPACE inh", vec!["DROP <keyspace inh>"]),
        ("CREATE TABLE x (k int PRIMARY KEY)", vec!["CREATE <all tables in inh>"]),
        ("ALTER TABLE base ADD x int", vec!["ALTER <table inh.base>"]),
        ("DROP TABLE base", vec!["DROP <table inh.base>"]),
        ("CREATE TYPE x (a int)", vec!["CREATE <all tables in inh>"]),
        ("ALTER TYPE addr ADD a int", vec!["ALTER <all tables in inh>"]),
        ("DROP TYPE addr", vec!["DROP <all tables in inh>"]),
        ("CREATE INDEX ON base (v)", vec!["ALTER <table inh.base>"]),
        ("DROP INDEX base_w", vec!["ALTER <table inh.base>"]),
        ("DROP INDEX nosuch", vec![]),
        ("DROP MATERIALIZED VIEW view_w", vec!["ALTER <table inh.base>"]),
        ("DROP MATERIALIZED VIEW nosuch", vec![]),
        (
            "CREATE AGGREGATE a(int) SFUNC plus STYPE addr FINALFUNC fin",
            vec![
                "CREATE <all functions in inh>",
                "EXECUTE <function inh.plus(inh.addr, int)>",
                "EXECUTE <function inh.fin(inh.addr)>",
            ],
        ),
        ("DROP FUNCTION plus(int, int)", vec!["DROP <function inh.plus(int, int)>"]),
        ("CREATE ROLE r", vec!["OnRole(Create, AllRoles)"]),
        ("DROP ROLE r", vec!["OnRole(Drop, Role(\"r\"))"]),
        (
            "GRANT SELECT ON base TO r",
            vec!["held AUTHORIZE <table inh.base>", "held SELECT <table inh.base>"],
        ),
        ("LIST ROLES", vec!["AsRolesStand"]),
    ] {
        assert_eq!(needs(&run, cql), expected, "{cql}");
    }
    let parsed = parse("SELECT * FROM system.local").unwrap();
    let prepared = prepare(&parsed, None, run.state.schema()).unwrap();
    assert!(prepared.needs[0].granted_to_all());
}

#[test]
fn clients_are_told_of_tables_in_the_order_in_which_they_last_changed() {
    let mut state = SchemaState::new(SchemaRows::new(), [], Release::V5_0, NOW).unwrap();
    let options = ChangeOptions::default();
    let now = std::cell::Cell::new(0_i64);
    let told = |state: &mut SchemaState, text: &str| -> Vec<String> {
        let schema = Arc::clone(state.schema());
        let prepared = prepare(&parse(text).expect(text), Some("ks"), &schema).expect(text);
        let Plan::Schema(ddl) = prepared.plan else { panic!("{text}") };
        let change = ddl.change(&schema, &options).expect(text).expect(text);
        now.set(now.get() + 1);
        let applied = state.change(&change, now.get(), TableId([now.get() as u8; 16]), &options);
        let name = |event: SchemaEvent| match event.target {
            Target::Table(name) | Target::Type(name) => name,
            other => format!("{other:?}"),
        };
        applied.expect(text).events.into_iter().map(name).collect()
    };
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    told(&mut state, &format!("CREATE KEYSPACE ks WITH replication = {replication}"));
    told(&mut state, "CREATE TYPE u (f int)");
    for name in ["b", "c", "a"] {
        told(&mut state, &format!("CREATE TABLE {name} (k int PRIMARY KEY, v frozen<u>)"));
    }
    assert_eq!(told(&mut state, "ALTER TYPE u ADD g int"), ["u", "b", "c", "a"]);
    assert_eq!(told(&mut state, "ALTER TABLE c WITH comment = 'x'"), ["c"]);
    assert_eq!(told(&mut state, "ALTER TYPE u ADD h int"), ["u", "b", "a", "c"]);
    told(&mut state, "DROP TABLE b");
    told(&mut state, "CREATE TABLE b (k int PRIMARY KEY, v frozen<u>)");
    assert_eq!(told(&mut state, "ALTER TYPE u ADD i int"), ["u", "a", "c", "b"]);
    // by name what was loaded
    let mut state = SchemaState::new(state.rows().clone(), [], Release::V5_0, NOW).unwrap();
    assert_eq!(told(&mut state, "ALTER TYPE u ADD j int"), ["u", "a", "b", "c"]);
    told(&mut state, "ALTER TABLE a WITH comment = 'x'");
    assert_eq!(told(&mut state, "DROP KEYSPACE ks"), ["b", "c", "a", "u", "Keyspace"]);
}

#[test]
fn masks_are_found_stored_and_shown_where_they_are_allowed() {
    let mut run = small_state();
    let create = "CREATE TABLE inh.m (k int PRIMARY KEY, v text MASKED WITH mask_inner(1, null, '#'), \
                  n int MASKED WITH mask_replace(1 + 2))";
    let refused = |run: &mut Run, cql: &str| run.run(cql, None, None).unwrap_err().to_string();
    assert!(refused(&mut run, create).starts_with("Cannot mask columns"));
    run.options.masking = true;
    run.run(create, None, None).unwrap();
    let shown = |run: &mut Run| run.run("DESCRIBE TABLE inh.m", None, None).unwrap().to_string();
    let text = shown(&mut run);
    assert!(text.contains("v text MASKED WITH system.mask_inner(1, null, '#')"), "{text}");
    assert!(text.contains("n int MASKED WITH system.mask_replace(3)"), "{text}");
    for (mask, why) in [
        ("abs()", "Not-masking function abs()"),
        ("max()", "Aggregate function max()"),
        ("nosuch(1)", "Unable to find masking function for n"),
        ("mask_hash()", "Masking function mask_hash() return type is blob"),
        ("mask_replace(?)", "Argument ? of masking function"),
    ] {
        let text = refused(&mut run, &format!("ALTER TABLE inh.m ALTER n MASKED WITH {mask}"));
        assert!(text.starts_with(why), "{text}");
    }
    // and whoever may not see behind them sees nothing
    let read = needs(&run, "SELECT v FROM inh.m");
    assert!(read.iter().any(|need| need.contains("UNMASK")), "{read:?}");
    run.options.masking = false;
    run.run("ALTER TABLE inh.m ALTER n DROP MASKED", None, None).unwrap();
    assert!(!shown(&mut run).contains("mask_replace"));
}
