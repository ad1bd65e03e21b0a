//! Laws: the rows of slices are those that satisfy the predicate; pages put together are the whole;
//! no bytes bring anything down.

use cql::Plan;
use cql::select::{PageRequest, Position, Read, RowFilter};
use proptest::prelude::*;
use rows::{Clustering, compare};
use std::cmp::Ordering;

use crate::select::world::{Given, World};

/// Tables of three clustering columns in all combinations of directions: `t0` to `t7`.
fn world() -> World {
    let mut world = World::new();
    for table in 0..8 {
        let order: Vec<_> = (0..3)
            .map(|c| format!("c{c} {}", if table >> c & 1 == 0 { "ASC" } else { "DESC" }))
            .collect();
        world.create(&format!(
            "CREATE TABLE t{table} (k int, c0 int, c1 int, c2 int, v int, PRIMARY KEY (k, c0, c1, c2)) WITH CLUSTERING ORDER BY ({})",
            order.join(", ")
        ));
    }
    world
}

/// A relation: first column, operator, values of the columns from there on.
#[derive(Clone, Debug)]
enum Asked {
    Compare(usize, &'static str, Vec<i32>),
    In(usize, Vec<Vec<i32>>),
}

impl Asked {
    fn text(&self) -> String {
        let columns = |from: usize, count: usize| {
            let names: Vec<_> = (from..from + count).map(|c| format!("c{c}")).collect();
            format!("({})", names.join(", "))
        };
        let row = |values: &Vec<i32>| {
            format!("({})", values.iter().map(i32::to_string).collect::<Vec<_>>().join(", "))
        };
        match self {
            Self::Compare(from, operator, values) => {
                format!("{} {operator} {}", columns(*from, values.len()), row(values))
            }
            Self::In(from, rows) => format!(
                "{} IN ({})",
                columns(*from, rows[0].len()),
                rows.iter().map(row).collect::<Vec<_>>().join(", ")
            ),
        }
    }

    fn holds(&self, row: &[i32; 3]) -> bool {
        match self {
            Self::Compare(from, operator, values) => {
                let order = row[*from..from + values.len()].cmp(values);
                match *operator {
                    "=" => order.is_eq(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                }
            }
            Self::In(from, rows) => {
                rows.iter().any(|values| row[*from..from + values.len()] == values[..])
            }
        }
    }
}

fn asked() -> impl Strategy<Value = Vec<Asked>> {
    let values = |count: usize| prop::collection::vec(0..4_i32, count);
    let prefix = (0..3_usize).prop_flat_map(move |length| {
        (0..length)
            .map(|at| {
                prop_oneof![
                    values(1).prop_map(move |v| Asked::Compare(at, "=", v)),
                    prop::collection::vec(values(1), 1..4).prop_map(move |v| Asked::In(at, v)),
                ]
            })
            .collect::<Vec<_>>()
    });
    prefix.prop_flat_map(move |prefix| {
        let from = prefix.len();
        let lower = (1..=3 - from).prop_flat_map(values);
        let upper = (1..=3 - from).prop_flat_map(values);
        let low = prop::sample::select(vec![None, Some(">"), Some(">=")]);
        let high = prop::sample::select(vec![None, Some("<"), Some("<=")]);
        (low, lower, high, upper).prop_map(move |(low, lower, high, upper)| {
            let mut asked = prefix.clone();
            asked.extend(low.map(|operator| Asked::Compare(from, operator, lower)));
            asked.extend(high.map(|operator| Asked::Compare(from, operator, upper)));
            asked
        })
    })
}

fn read_of(world: &World, statement: &str) -> Read {
    let prepared = world.prepare(statement).expect("it prepares");
    let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
    World::with_bind(&Given(Vec::new()), |bind| select.bind(bind, &PageRequest::default()))
        .expect("it binds")
}

fn clustering(row: &[i32; 3]) -> Clustering {
    let values = row.map(i32::to_be_bytes);
    Clustering::new(values.iter().map(|value| Some(&value[..])))
}

fn grid() -> impl Iterator<Item = [i32; 3]> {
    (0..64).map(|n| [n >> 4 & 3, n >> 2 & 3, n & 3])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn slices_select_what_satisfies(table in 0..8, asked in asked()) {
        let world = world();
        let relations: Vec<_> = asked.iter().map(|a| format!(" AND {}", a.text())).collect();
        let statement = format!("SELECT v FROM t{table} WHERE k = 1{}", relations.concat());
        let read = read_of(&world, &statement);
        let layout = &world.schema.table("sel", &format!("t{table}")).expect("it is there").layout;
        let nothing = read.target.is_nothing();
        for row in grid() {
            let selected = !nothing && read.rows.selects(layout, &clustering(&row));
            let wanted = asked.iter().all(|asked| asked.holds(&row));
            prop_assert_eq!(selected, wanted, "{:?} by {}", row, statement);
        }
        if let RowFilter::Slices(slices) = &read.rows {
            for (start, end) in slices {
                prop_assert_eq!(compare(layout, start, end), Ordering::Less);
                prop_assert!(start.kind.is_start() && end.kind.is_end());
            }
            for pair in slices.windows(2) {
                prop_assert_ne!(compare(layout, &pair[0].1, &pair[1].0), Ordering::Greater);
            }
        }
    }

    #[test]
    fn what_is_left_after_a_row_is_what_follows_it(
        table in 0..8,
        asked in asked(),
        last in 0..64_usize,
        reversed: bool,
    ) {
        let world = world();
        let relations: Vec<_> = asked.iter().map(|a| format!(" AND {}", a.text())).collect();
        let read = read_of(&world, &format!("SELECT v FROM t{table} WHERE k = 1{}", relations.concat()));
        let layout = &world.schema.table("sel", &format!("t{table}")).expect("it is there").layout;
        let last = clustering(&grid().nth(last).expect("one of 64"));
        let rest = read.rows.clone().after(layout, &last, reversed);
        for row in grid() {
            let row = clustering(&row);
            let order = rows::compare_clusterings(layout, row.as_ref(), last.as_ref());
            let follows = if reversed { order.is_lt() } else { order.is_gt() };
            let wanted = follows && read.rows.selects(layout, &row);
            prop_assert_eq!(rest.selects(layout, &row), wanted);
        }
    }

    #[test]
    fn pages_put_together_are_the_whole(
        table in 0..8,
        asked in asked(),
        size in 1..6_u32,
        keys in prop::sample::select(vec!["k = 1", "k IN (2, 1, 3)", "token(k) > -9000000000000000000"]),
        rest in prop::sample::select(vec!["", " LIMIT 7", " PER PARTITION LIMIT 3", " PER PARTITION LIMIT 2 LIMIT 3"]),
    ) {
        let mut world = world();
        for k in 1..4 {
            for row in grid().filter(|row| row.iter().sum::<i32>() % 3 != k) {
                let [a, b, c] = row;
                world.apply(&format!(
                    "INSERT INTO t{table} (k, c0, c1, c2, v) VALUES ({k}, {a}, {b}, {c}, {k}{a}{b}{c})"
                ));
            }
        }
        let relations: Vec<_> = asked.iter().map(|a| format!(" AND {}", a.text())).collect();
        let statement = format!("SELECT * FROM t{table} WHERE {keys}{}{rest} ALLOW FILTERING", relations.concat());
        let prepared = world.prepare(&statement).expect("it prepares");
        let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
        let whole = world.run(select, &Given(Vec::new()), None).expect("it runs");
        let paged = world.run(select, &Given(Vec::new()), Some(size)).expect("it runs");
        prop_assert_eq!(whole.rows, paged.rows);
    }

    #[test]
    fn no_bytes_bring_it_down(
        statement in prop::sample::select(vec![
            "SELECT * FROM t0 WHERE k = ? AND c0 = ? AND c1 > ? LIMIT ?",
            "SELECT * FROM t1 WHERE k IN ? AND c0 IN ? AND (c1, c2) IN ? PER PARTITION LIMIT ?",
            "SELECT * FROM t2 WHERE token(k) > ? AND (c0, c1) > ? AND (c0) < ? LIMIT ? ALLOW FILTERING",
            "SELECT * FROM t3 WHERE k = ? AND (c0, c1) = ? AND c2 IN ? AND v = ? ALLOW FILTERING",
        ]),
        values in prop::collection::vec(
            prop::option::of(prop::option::of(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                prop::collection::vec(0..5_u8, 4),
                prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 1, 4]), 8..24),
            ])),
            4,
        ),
        key in prop::option::of(prop::collection::vec(any::<u8>(), 0..9)),
        row in prop::option::of(prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 4)), 0..4)),
        remaining: u32,
    ) {
        let world = world();
        let prepared = world.prepare(statement).expect("it prepares");
        let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
        let row = row.map(|row| Clustering::new(row.iter().map(Option::as_deref)));
        let after =
            Some(Position { key: key.as_deref(), row, remaining, remaining_in_partition: remaining });
        let page = PageRequest { size: Some(3), after };
        World::with_bind(&Given(values), |bind| drop(select.bind(bind, &page)));
    }
}
