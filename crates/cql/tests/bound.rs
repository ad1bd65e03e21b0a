//! What a statement evaluates is evaluated once, whatever is asked of its bound form.

use std::cell::Cell;
use std::sync::Arc;

use crate::common;

use common::Fixture;
use cql::modify::{Cas, CellContext, Modify, NothingRead, Part};
use cql::{Bind, Limits, Plan, Values};
use types::Uuid;

const SCHEMA: &str = "
CREATE TABLE ks.one (k uuid PRIMARY KEY, v uuid, l list<uuid>, m map<uuid, timeuuid>) WITH id = 'f1a5d1a0-0000-4000-8000-000000000001';
CREATE TABLE ks.many (k int, c timeuuid, d timestamp, v uuid, s uuid static, l list<timeuuid>, PRIMARY KEY (k, c, d)) WITH id = 'f1a5d1a0-0000-4000-8000-000000000002';
";

/// No values.
struct Nothing;

impl Values for Nothing {
    fn len(&self) -> usize {
        0
    }

    fn get(&self, _: usize) -> cql::Value<'_> {
        cql::Value::Unset
    }
}

/// Runs with an execution in which no value comes twice; says how many there were.
fn once<T>(run: impl FnOnce(Bind<'_>) -> T) -> (T, usize) {
    let given = Cell::new(0);
    let next = || {
        given.set(given.get() + 1);
        given.get()
    };
    let time_uuid = || Uuid::from_ticks(139_000_000_000_000_000 + next(), 7).to_bytes();
    let random = || Uuid::from_random(u128::from(next().unsigned_abs()).to_be_bytes()).to_bytes();
    let done = run(Bind {
        values: &Nothing,
        timestamp: 1_700_000_000_000_000,
        now_seconds: 1_700_000_000,
        now_millis: 1_700_000_000_000,
        protocol_version: 5,
        time_uuid: &time_uuid,
        list_path: &|| [0; 16],
        random: &random,
        limits: &Limits::default(),
        guard: None,
        once: Default::default(),
    });
    (done, usize::try_from(given.get()).unwrap())
}

fn modify(text: &str) -> Arc<Modify> {
    match Fixture::from_cql(SCHEMA).prepare(text).expect(text).plan {
        Plan::Modify(modify) => modify,
        other => panic!("{other:?}"),
    }
}

/// Statements, and how many values each takes that no other has.
const STATEMENTS: &[(&str, usize)] = &[
    ("INSERT INTO ks.one (k, v) VALUES (uuid(), uuid())", 2),
    ("INSERT INTO ks.one (k, l, m) VALUES (now(), [uuid(), now()], {uuid(): now()})", 5),
    ("UPDATE ks.one SET v = uuid(), m[uuid()] = now(), l = l + [uuid()] WHERE k = uuid()", 5),
    ("UPDATE ks.one SET l = l - [uuid()] WHERE k IN (uuid(), uuid())", 4),
    ("DELETE m[uuid()] FROM ks.one WHERE k = uuid()", 2),
    (
        "INSERT INTO ks.many (k, c, d, v, s) VALUES (1, now(), currentTimestamp(), uuid(), uuid())",
        3,
    ),
    ("UPDATE ks.many SET v = uuid(), s = uuid() WHERE k = 1 AND c IN (now(), now()) AND d = 5", 6),
    ("UPDATE ks.many SET s = uuid() WHERE k IN (1, 2, 3)", 3),
    ("DELETE FROM ks.many WHERE k = 1 AND c > now()", 1),
    ("DELETE v, s FROM ks.many WHERE k = 1 AND c = now() AND d = 5", 1),
];

#[test]
fn what_is_bound_is_written_as_often_as_one_likes() {
    for (text, values) in STATEMENTS {
        let modify = modify(text);
        let (bound, given) = once(|bind| modify.bind(bind).expect(text));
        assert_eq!(given, *values, "{text}");
        let cells = CellContext { list_path: &|| [0; 16], guard: None };
        let first = bound.updates(cells, &NothingRead).expect(text).updates;
        let again = bound.updates(cells, &NothingRead).expect(text).updates;
        assert_eq!(format!("{first:?}"), format!("{again:?}"), "{text}");
        let keys: Vec<&[u8]> = bound.keys().iter().map(|key| &**key).collect();
        assert!(first.iter().all(|update| keys.contains(&&*update.key)), "{text}");
    }
}

#[test]
fn what_is_bound_does_what_is_done_at_once() {
    for (text, values) in STATEMENTS {
        let modify = modify(text);
        if modify.needs_read() {
            continue;
        }
        let (direct, given) = once(|bind| modify.updates(bind).expect(text).updates);
        assert_eq!(given, *values, "{text}");
        let (bound, _) = once(|bind| {
            let cells = CellContext { list_path: bind.list_path, guard: None };
            modify.bind(bind).expect(text).updates(cells, &NothingRead).expect(text).updates
        });
        assert_eq!(format!("{direct:?}"), format!("{bound:?}"), "{text}");
    }
}

#[test]
fn each_round_of_a_conditional_statement_writes_the_same() {
    for (text, values) in [
        ("INSERT INTO ks.one (k, v) VALUES (uuid(), uuid()) IF NOT EXISTS", 2),
        ("UPDATE ks.one SET v = uuid(), l = l + [uuid()] WHERE k = now() IF v = uuid()", 4),
        ("INSERT INTO ks.many (k, c, d, v) VALUES (1, now(), 5, uuid()) IF NOT EXISTS", 2),
        ("UPDATE ks.many SET v = uuid() WHERE k = 1 AND c = now() AND d = 5 IF v = null", 2),
    ] {
        let modify = modify(text);
        let (cas, given) =
            once(|bind| Cas::bind(vec![Part { modify: &modify, bind }], false).expect(text));
        assert_eq!(given, values, "{text}");
        let current = cas.nothing(1_700_000_000);
        let round = |timestamp| {
            let path = || [0; 16];
            cas.updates(&current, timestamp, &path, &mut Vec::new()).expect(text)
        };
        let (first, second) = (round(5), round(6));
        assert_eq!(*first.key, *cas.key(), "{text}");
        let values = |update: &rows::PartitionUpdate| {
            let rows = update.rows.iter().map(|row| {
                let cells = row.cells().map(|cell| (cell.column, cell.value.to_vec()));
                (row.clustering().as_packed().to_vec(), cells.collect::<Vec<_>>())
            });
            (update.key.to_vec(), rows.collect::<Vec<_>>())
        };
        assert_eq!(values(&first), values(&second), "{text}");
    }
}
