//! The demonstration's writer on the machine's own counters.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use admin::demo;
use env::real::{RealOptions, run};
use env::sim::{World, WorldOptions};
use env::{Env, Mesh};

#[test]
fn writes_what_the_machine_does() {
    let options = RealOptions { signals: false, ring_entries: 64, ..RealOptions::default() };
    run(options, |env: Env, _: Mesh<()>| async move {
        let statements = Rc::new(RefCell::new(Vec::new()));
        let lines = RefCell::new(Vec::new());
        let (seen, ending, refused) = (statements.clone(), env.clone(), Cell::new(false));
        let execute = async move |cql: String| {
            // The first statement fails once: it is tried again.
            if !refused.replace(true) {
                return Err("not yet".to_owned());
            }
            if cql.contains("memory.used_bytes") {
                ending.terminate();
            }
            seen.borrow_mut().push(cql);
            Ok(())
        };
        let say = |line: &str| lines.borrow_mut().push(line.to_owned());
        demo::run(&env, execute, say).await.map_err(io::Error::other)?;
        let statements = statements.take();
        assert!(statements[0].starts_with("CREATE KEYSPACE IF NOT EXISTS demo"));
        assert!(statements[1].starts_with("CREATE TABLE IF NOT EXISTS demo.machine"));
        assert!(statements[2..].iter().all(|s| s.starts_with("INSERT INTO demo.machine")));
        assert!(statements.iter().any(|s| s.contains("'cpu.busy_percent'")), "{statements:?}");
        let lines = lines.take();
        assert_eq!(
            lines[0],
            "demo: a statement failed, going on with the next measurement: \
             not yet"
        );
        assert_eq!(lines[1], "demo: statements succeed again");
        assert!(lines[3].trim().starts_with("SELECT at, value FROM demo.machine WHERE"));
        assert_eq!(lines.len(), 4);
        Ok::<(), io::Error>(())
    })
    .unwrap();
}

#[test]
fn a_world_without_proc_is_an_error() {
    let world = World::new(1, WorldOptions::default());
    let node = world.node("10.0.0.1".parse().unwrap());
    world.start(node, 1, |env: Env, _: Mesh<()>| async move {
        let result = demo::run(&env, async |_| Ok(()), |_| {}).await;
        let text = result.expect_err("no /proc").to_string();
        assert!(text.starts_with("cannot read /proc/stat"), "{text}");
        Ok::<(), io::Error>(())
    });
    world.run_until(|| !world.is_up(node), Duration::from_secs(5)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok));
}
