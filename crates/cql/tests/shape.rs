//! The shapes of trees where precedence, look-ahead or folding could go wrong.

use cql::ast::*;
use cql::{parse, parse_of_shard_aware};

fn select(text: &str) -> Select {
    match parse(text).expect(text).statement {
        Statement::Select(select) => *select,
        other => panic!("{other:?}"),
    }
}

/// The first selector of `SELECT text FROM t`, with brackets for every operation.
fn selected(text: &str) -> String {
    match select(&format!("SELECT {text} FROM t")).selectors {
        Selectors::All => "*".to_owned(),
        Selectors::List(list) => show(&list[0].expression),
    }
}

fn sign(operator: Arithmetic) -> char {
    match operator {
        Arithmetic::Add => '+',
        Arithmetic::Subtract => '-',
        Arithmetic::Multiply => '*',
        Arithmetic::Divide => '/',
        Arithmetic::Modulo => '%',
    }
}

fn show(selectable: &Selectable) -> String {
    let all = |list: &[Selectable]| list.iter().map(show).collect::<Vec<_>>().join(" ");
    match selectable {
        Selectable::Column(name) => name.clone(),
        Selectable::Literal(literal) => literal.text.clone(),
        Selectable::Null => "null".into(),
        Selectable::Marker(number) => format!("?{number}"),
        Selectable::CountRows => "count(*)".into(),
        Selectable::CellMeta(kind, of) => format!("{kind:?}({})", show(of)),
        Selectable::Cast(of, to) => format!("cast({} {})", show(of), to.name()),
        Selectable::Function(name, arguments) => format!("{}({})", name.name, all(arguments)),
        Selectable::Field(of, field) => format!("{}.{field}", show(of)),
        Selectable::Element(of, key) => format!("{}[{}]", show(of), term(key)),
        Selectable::Slice(of, from, to) => {
            let bound = |b: &Option<Term>| b.as_ref().map(term).unwrap_or_default();
            format!("{}[{}..{}]", show(of), bound(from), bound(to))
        }
        Selectable::TypeHint(_, of) => format!("hint({})", show(of)),
        Selectable::Tuple(list) => format!("tuple({})", all(list)),
        Selectable::List(list) => format!("list({})", all(list)),
        Selectable::Set(list) => format!("set({})", all(list)),
        Selectable::Map(list) => {
            let entries: Vec<_> =
                list.iter().map(|(k, v)| format!("{}:{}", show(k), show(v))).collect();
            format!("map({})", entries.join(" "))
        }
        Selectable::Binary(operator, a, b) => {
            format!("({}{}{})", show(a), sign(*operator), show(b))
        }
        Selectable::Negate(of) => format!("(-{})", show(of)),
    }
}

fn term(value: &Term) -> String {
    match value {
        Term::Literal(literal) => literal.text.clone(),
        Term::Marker(number) => format!("?{number}"),
        Term::Binary(operator, a, b) => format!("({}{}{})", term(a), sign(*operator), term(b)),
        Term::Negate(of) => format!("(-{})", term(of)),
        Term::TypeHint(_, of) => format!("hint({})", term(of)),
        Term::Tuple(list) => {
            format!("tuple({})", list.iter().map(term).collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    }
}

/// The right side of `SELECT * FROM t WHERE a = text`.
fn compared(text: &str) -> Term {
    match select(&format!("SELECT * FROM t WHERE a = {text}")).filter.remove(0) {
        Relation::Column(_, Operator::Eq, value) => value,
        other => panic!("{other:?}"),
    }
}

fn assignment(text: &str) -> Operation {
    match parse(&format!("UPDATE t SET {text} WHERE k = 1")).expect(text).statement {
        Statement::Update(mut update) => update.assignments.remove(0).operation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn arithmetic_groups_to_the_left_and_products_bind_tighter() {
    assert_eq!(selected("a + b * c - d"), "((a+(b*c))-d)");
    assert_eq!(selected("a / b % c * d"), "(((a/b)%c)*d)");
    assert_eq!(selected("- a * b"), "((-a)*b)");
    assert_eq!(selected("- - a"), "(-(-a))");
    assert_eq!(selected("(a + b) * c"), "(tuple((a+b))*c)");
    assert_eq!(selected("- a.f[1]"), "(-a.f[1])");
    assert_eq!(term(&compared("1 + 2 * 3 - 4")), "((1+(2*3))-4)");
    assert_eq!(term(&compared("- ? + 1")), "((-?0)+1)");
}

#[test]
fn a_minus_before_digits_belongs_to_them() {
    assert_eq!(term(&compared("1 - 1")), "(1-1)");
    assert!(parse("SELECT * FROM t WHERE a = 1 -1").is_err());
    assert_eq!(term(&compared("-1")), "-1");
}

#[test]
fn parts_of_values() {
    assert_eq!(selected("m['a'..'b'].f[..3]"), "m[a..b].f[..3]");
    assert_eq!(selected("m[1..]"), "m[1..]");
    assert_eq!(selected("writetime(u.f)"), "Writetime(u.f)");
    assert_eq!(selected("f(a).g"), "f(a).g");
    assert_eq!(selected("a.b(c)"), "b(c)");
    assert_eq!(selected("a.b.c"), "a.b.c");
}

#[test]
fn modifiers_are_columns_where_they_must_be() {
    for (text, json, distinct, first) in [
        ("json", false, false, "json"),
        ("json, a", false, false, "json"),
        ("json a", true, false, "a"),
        ("JSON DISTINCT a", true, true, "a"),
        ("json - json", true, false, "(-json)"),
        ("json as x", false, false, "json"),
        ("json[1..2]", false, false, "json[1..2]"),
        ("json[1]", true, false, "list(1)"),
        ("distinct", false, false, "distinct"),
        ("distinct distinct", false, true, "distinct"),
        ("distinct + 1", false, false, "(distinct+1)"),
    ] {
        let select = select(&format!("SELECT {text} FROM t"));
        assert_eq!((select.json, select.distinct), (json, distinct), "{text}");
        let Selectors::List(list) = select.selectors else { panic!("{text}") };
        assert_eq!(show(&list[0].expression), first);
    }
}

#[test]
fn parentheses_are_hints_tuples_or_nothing() {
    assert_eq!(selected("(int) a"), "hint(a)");
    assert_eq!(selected("(a)(b)"), "hint(tuple(b))");
    assert_eq!(selected("(a) + b"), "(tuple(a)+b)");
    assert_eq!(selected("(a) as x"), "tuple(a)");
    assert_eq!(selected("(a)[1]"), "hint(list(1))");
    assert_eq!(selected("(frozen<list<int>>)[a]"), "hint(list(a))");
    assert_eq!(term(&compared("('x')")), "tuple(x)");
    assert_eq!(term(&compared("('Int32Type') 1")), "hint(1)");
    assert_eq!(term(&compared("(int) ?")), "hint(?0)");
}

#[test]
fn braces_are_sets_maps_or_user_types() {
    assert_eq!(compared("{}"), Term::Set(vec![]));
    assert!(matches!(compared("{1, 2}"), Term::Set(list) if list.len() == 2));
    assert!(matches!(compared("{1: 2}"), Term::Map(list) if list.len() == 1));
    assert!(matches!(compared("{f: 1, \"G\": 2}"), Term::Udt(list) if list[1].0 == "G"));
    assert!(matches!(compared("{f(1): 2}"), Term::Map(_)));
}

#[test]
fn assignments() {
    let literal =
        |text: &str| Term::Literal(Literal { kind: LiteralKind::Integer, text: text.to_owned() });
    assert_eq!(assignment("a = 1"), Operation::Set(literal("1")));
    assert_eq!(assignment("a = a + 1"), Operation::Add(literal("1")));
    assert_eq!(assignment("a = a -1"), Operation::Add(literal("-1")));
    assert_eq!(assignment("a = a - 1"), Operation::Subtract(literal("1")));
    assert_eq!(assignment("a = 1 + a"), Operation::Prepend(literal("1")));
    assert_eq!(assignment("a += 1"), Operation::Add(literal("1")));
    assert_eq!(assignment("a -= 1"), Operation::Subtract(literal("1")));
    assert_eq!(assignment("a[1] = 2"), Operation::SetElement(literal("1"), literal("2")));
    assert_eq!(assignment("a.F = 2"), Operation::SetField("f".to_owned(), literal("2")));
    assert!(matches!(assignment("a = 1 + 2"), Operation::Set(Term::Binary(..))));
}

#[test]
fn markers_are_numbered_as_they_stand() {
    let parsed = parse(
        "BEGIN BATCH USING TIMESTAMP ? INSERT INTO t (a, b) VALUES (?, :B) \
         UPDATE t SET m[?] = :\"V\" WHERE k IN ? IF x = ? APPLY BATCH",
    )
    .expect("parses");
    let names: Vec<_> = parsed.markers.iter().map(|name| name.as_deref()).collect();
    assert_eq!(names, [None, None, Some("b"), None, Some("V"), None, None]);
    // What look-ahead read twice counts once.
    let parsed =
        parse("SELECT (a)(?), json FROM t WHERE (a, b) IN (?, ?) LIMIT ?").expect("parses");
    assert_eq!(parsed.markers.len(), 4);
}

#[test]
fn names_fold_and_strings_unquote() {
    let select =
        select("SELECT Foo, \"Foo\", \"a\"\"b\" FROM Ks.\"T\" WHERE a = 'it''s' AND b = $$it's$$");
    assert_eq!(select.table, QualifiedName { keyspace: Some("ks".into()), name: "T".into() });
    let Selectors::List(list) = select.selectors else { panic!() };
    let names: Vec<_> = list.iter().map(|selector| show(&selector.expression)).collect();
    assert_eq!(names, ["foo", "Foo", "a\"b"]);
    for relation in select.filter {
        let Relation::Column(_, _, value) = relation else { panic!() };
        assert_eq!(term(&value), "it's");
    }
}

#[test]
fn the_timeout_of_shard_aware_drivers() {
    let timeout = |text: &str| match parse_of_shard_aware(text).expect(text).statement {
        Statement::Select(select) => select.timeout,
        other => panic!("{other:?}"),
    };
    let asked = "SELECT * FROM system.local WHERE key = 'local' USING TIMEOUT 2000ms";
    assert_eq!(term(&timeout(asked).expect("given")), "2000ms");
    assert!(
        timeout("SELECT * FROM System_Schema.t LIMIT 1 ALLOW FILTERING USING TIMEOUT ?;").is_some()
    );
    assert!(timeout("SELECT * FROM ks.t").is_none());
    for refused in [
        "SELECT * FROM system.t USING TIMEOUT 5",
        "SELECT * FROM system.t USING TTL 5",
        "UPDATE system.t USING TIMEOUT 5s SET a = 1 WHERE k = 1",
        // of tables that hold no metadata; of none that is named
        "SELECT * FROM ks.t USING TIMEOUT 5s",
        "SELECT * FROM local USING TIMEOUT 5s",
    ] {
        assert!(parse_of_shard_aware(refused).is_err(), "{refused}");
    }
    // of drivers that know of no shards
    let refused = parse(asked).expect_err("no CQL").to_string();
    assert!(refused.contains("mismatched input 'USING' expecting EOF"), "{refused}");
}

#[test]
fn tables() {
    let Statement::CreateTable(table) = parse(
        "CREATE TABLE t (a int, b frozen<list<text>>, s int STATIC, v vector<float, 3>, \
         PRIMARY KEY ((a), b)) WITH CLUSTERING ORDER BY (b DESC) AND comment = 'x' \
         AND compaction = {'class': 'X', 'n': 4}",
    )
    .expect("parses")
    .statement
    else {
        panic!()
    };
    let key = table.primary_key.expect("given");
    assert_eq!((key.partition, key.clustering), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(table.options.clustering_order, [("b".to_owned(), true)]);
    assert_eq!(
        table.options.properties[1].value,
        PropertyValue::Map(vec![("class".into(), "X".into()), ("n".into(), "4".into())])
    );
    let text = NativeType::Text;
    let list = RawType::Frozen(Box::new(RawType::List(Box::new(RawType::Native(text)))));
    assert_eq!(table.columns[1].data_type, list);
    assert!(table.columns[2].is_static);
}

#[test]
fn errors_say_where() {
    let Err(cql::ParseError::Syntax(error)) = parse("SELECT *\n  frm t") else { panic!() };
    assert_eq!((error.line, error.column), (2, 2));
    assert!(
        error.message.starts_with("line 2:2 mismatched input 'frm' expecting K_FROM"),
        "{error}"
    );
    let Err(cql::ParseError::Syntax(error)) = parse("SELECT * FROM") else { panic!() };
    assert_eq!(error.message, "line 0:-1 no viable alternative at input '<EOF>'");
    let Err(cql::ParseError::Syntax(error)) = parse("SELECT * FROM t@") else { panic!() };
    assert_eq!(error.message, "line 1:15 no viable alternative at character '@'");
}
