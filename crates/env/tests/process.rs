//! What ends a process: signals in order, panics at once. Without the test harness, whose own
//! threads would take the signals.
#![allow(clippy::disallowed_methods, reason = "starts itself again to see how it ends")]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use env::real::{RealOptions, run};
use env::{Class, Env, Mesh};

fn options() -> RealOptions {
    RealOptions { shards: 2, pin: true, ring_entries: 64, ..RealOptions::default() }
}

/// Serves until a signal comes; says so on its way out.
fn serve() {
    run(options(), |env: Env, _: Mesh<()>| async move {
        if env.shard() == 0 {
            println!("ready");
        }
        env.terminated().await;
        Ok::<_, io::Error>(())
    })
    .unwrap();
    println!("drained");
}

fn panic_in_a_task() {
    let result = run(options(), |env: Env, _: Mesh<()>| async move {
        if env.shard() == 1 {
            env.spawn(Class::Statement, async { panic!("on purpose") });
        }
        env.terminated().await;
        Ok::<_, io::Error>(())
    });
    println!("survived: {result:?}");
}

/// Another shard's panic must not leave helpers' panics out.
fn panic_in_a_helper() {
    let result = run(options(), |env: Env, _: Mesh<()>| async move {
        env.helper(|| panic!("on purpose")).await;
        Ok::<_, io::Error>(())
    });
    println!("survived: {result:?}");
}

fn child(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(role).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => return serve(),
        Some("panic") => return panic_in_a_task(),
        Some("helper") => return panic_in_a_helper(),
        _ => {}
    }
    for signal in ["TERM", "INT"] {
        let mut node = child("serve").spawn().unwrap();
        let mut out = io::BufReader::new(node.stdout.take().unwrap());
        let mut line = String::new();
        io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "ready\n");
        let kill =
            Command::new("kill").args([&format!("-{signal}"), &node.id().to_string()]).status();
        assert!(kill.unwrap().success());
        line.clear();
        io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "drained\n");
        assert!(node.wait().unwrap().success());
        println!("SIG{signal} drains: ok");
    }
    for role in ["panic", "helper"] {
        let output = child(role).output().unwrap();
        assert_eq!(output.status.signal(), Some(6), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("on purpose"));
        println!("a panic in a {role} aborts: ok");
    }
    idle_shards_sleep();
}

/// No busy polling: an idle node turns its loops a handful of times.
fn idle_shards_sleep() {
    run(RealOptions { signals: false, ..options() }, |env: Env, _: Mesh<()>| async move {
        env.sleep(Duration::from_millis(100)).await;
        let stats = env.stats();
        assert!(stats.turns < 20 && stats.ring_enters < 20, "{stats:?}");
        Ok::<_, io::Error>(())
    })
    .unwrap();
    println!("idle shards sleep: ok");
}
