//! Operations on lists that depend on what is stored: what they ask for, and what they make of it.

use crate::common;

use common::{Fixture, TS};
use cql::modify::{Before, CellContext, Modify};
use cql::{CqlError, Plan};
use rows::{CellKind, CellRef, Clustering, ClusteringRef, RowBuilder, RowRef, Rows};

/// Stored: `l` of ks.coll at (1, 1), as paths and values; a deleted and an expired cell among them.
fn stored(fixture: &Fixture, column: u16) -> Rows {
    let mut builder = RowBuilder::new();
    let now = fixture.now_seconds;
    builder.start_row(one().as_ref());
    for (path, value) in [(b"a", 10_i32), (b"c", 20), (b"e", 10)] {
        builder.cell(CellRef::live(column, Some(path), TS - 10, &value.to_be_bytes()));
    }
    builder.cell(CellRef::tombstone(column, Some(b"b"), TS - 10, now - 100));
    let gone = 20_i32.to_be_bytes();
    builder.cell(CellRef::expiring(column, Some(b"d"), TS - 10, 5, now - 1, &gone));
    let table = fixture.schema.table("ks", "coll").expect("the table");
    let mut rows = Rows::default();
    rows.push(builder.finish_row(&table.layout));
    rows
}

struct Stored(Rows);

impl Before for Stored {
    fn row(&self, key: &[u8], clustering: Option<ClusteringRef<'_>>) -> Option<RowRef<'_>> {
        assert_eq!(key, [0, 0, 0, 1]);
        assert_eq!(clustering, Some(one().as_ref()));
        self.0.get(0)
    }
}

fn one() -> Clustering {
    Clustering::new([Some(&[0, 0, 0, 1][..])])
}

fn prepare(fixture: &Fixture, statement: &str) -> std::sync::Arc<Modify> {
    match fixture.prepare(statement).expect(statement).plan {
        Plan::Modify(modify) => modify,
        other => panic!("{other:?}"),
    }
}

/// Paths and values of the cells written, `None` for deleted ones.
fn run(statement: &str) -> Result<Vec<(Vec<u8>, Option<Vec<u8>>)>, CqlError> {
    let fixture = Fixture::from_cql(include_str!("../testdata/modify_schema.cql"));
    let modify = prepare(&fixture, statement);
    fixture.with_bind(&[], |bind| {
        let list_path = bind.list_path;
        let bound = modify.bind(bind)?;
        let wanted = bound.read_first().expect("it reads");
        assert_eq!((wanted.keys, wanted.rows), (vec![vec![0, 0, 0, 1]], vec![one()]));
        let [(column, false)] = wanted.columns[..] else { panic!("one regular column") };
        let before = Stored(stored(&fixture, column));
        let updates = bound.updates(CellContext { list_path, guard: None }, &before)?.updates;
        let cells = updates.iter().flat_map(|update| update.rows.iter()).flat_map(|r| r.cells());
        let value = |cell: &CellRef<'_>| (cell.kind == CellKind::Live).then(|| cell.value.to_vec());
        Ok(cells.map(|cell| (cell.path.unwrap_or_default().to_vec(), value(&cell))).collect())
    })
}

#[test]
fn an_index_counts_living_cells() {
    let set = |index| run(&format!("UPDATE ks.coll SET l[{index}] = 7 WHERE k = 1 AND c = 1"));
    let seven = Some(7_i32.to_be_bytes().to_vec());
    assert_eq!(set("0"), Ok(vec![(b"a".to_vec(), seven.clone())]));
    assert_eq!(set("1"), Ok(vec![(b"c".to_vec(), seven.clone())]));
    assert_eq!(set("2"), Ok(vec![(b"e".to_vec(), seven)]));
    for index in ["3", "-1"] {
        let message = format!("List index {index} out of bound, list has size 3");
        assert_eq!(set(index), Err(CqlError::Invalid(message)));
    }
}

#[test]
fn an_element_goes_by_index() {
    let cells = run("DELETE l[1] FROM ks.coll WHERE k = 1 AND c = 1");
    assert_eq!(cells, Ok(vec![(b"c".to_vec(), None)]));
}

#[test]
fn elements_go_by_value() {
    let cells = run("UPDATE ks.coll SET l = l - [10, 5] WHERE k = 1 AND c = 1");
    assert_eq!(cells, Ok(vec![(b"a".to_vec(), None), (b"e".to_vec(), None)]));
}

#[test]
fn what_reads_nothing_says_so() {
    let fixture = Fixture::from_cql(include_str!("../testdata/modify_schema.cql"));
    let modify = prepare(&fixture, "UPDATE ks.coll SET l = l + [1] WHERE k = 1 AND c = 1");
    assert!(!modify.needs_read());
    assert_eq!(
        fixture.with_bind(&[], |bind| modify.bind(bind).map(|bound| bound.read_first())),
        Ok(None)
    );
}
