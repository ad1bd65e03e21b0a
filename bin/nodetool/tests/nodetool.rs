//! The program itself: exit codes, streams, and what it sends.
#![allow(clippy::disallowed_methods, reason = "plays the node, and looks at processes")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs `nodetool` in a directory.
fn nodetool(dir: &Path, args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_nodetool");
    Command::new(program).args(args).current_dir(dir).env("HOME", dir).output().unwrap()
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn dir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("helenus-nodetool-{}-{name}", std::process::id()));
    std::fs::create_dir_all(dir.join("data")).unwrap();
    dir
}

/// A node that answers one request with fixed bytes; gives what it was asked.
fn node(dir: &Path, answer: &'static str) -> std::thread::JoinHandle<String> {
    let listener = UnixListener::bind(dir.join("admin.sock")).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        lines.read_line(&mut asked).unwrap();
        lines.read_line(&mut asked).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        asked
    })
}

#[test]
fn sends_the_verb_and_prints_the_answer() {
    let dir = dir("answer");
    let answer = "helenus-admin 3\n{\"shown\":{\"import\":{\"refused_directories\":[\"/b\"]}},\"refusal\":null}\n";
    let asked = node(&dir.join("data"), answer);
    let output = nodetool(&dir, &["-pp", "import", "-q", "ks", "t", "/a", "/b"]);
    let (code, out, err) = said(&output);
    let refused = "Some directories failed to import, check server logs for details:\n/b\n";
    assert_eq!((code, err.as_str()), (1, refused));
    assert!(out.starts_with("Doing a quick import"), "{out}");
    assert_eq!(
        asked.join().unwrap(),
        "helenus-admin 3\n{\"args\":[\"--print-port\",\"import\",\"-q\",\"ks\",\"t\",\"/a\",\"/b\"]}\n"
    );
    std::fs::create_dir_all(dir.join("other")).unwrap();
    let done = "helenus-admin 3\n{\"shown\":null,\"refusal\":null}\n";
    let asked = node(&dir.join("other"), done);
    // an option of a JVM, as Medusa gives one, means nothing
    let output = nodetool(&dir, &["-Da.b=c", "--data-dir", "other", "flush", "ks"]);
    assert_eq!(said(&output), (0, String::new(), String::new()));
    assert!(asked.join().unwrap().ends_with("[\"flush\",\"ks\"]}\n"));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn prints_json_where_it_is_asked_to() {
    let dir = dir("json");
    let answer =
        "helenus-admin 3\n{\"shown\":{\"native_transport\":{\"running\":true}},\"refusal\":null}\n";
    let asked = node(&dir.join("data"), answer);
    let output = nodetool(&dir, &["--format", "json", "statusbinary"]);
    let json = "{\n  \"native_transport\": {\n    \"running\": true\n  }\n}\n";
    assert_eq!(said(&output), (0, json.to_owned(), String::new()));
    assert!(asked.join().unwrap().ends_with("{\"args\":[\"statusbinary\"]}\n"));
    let (code, out, err) = said(&nodetool(&dir, &["--format", "yaml", "status"]));
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.starts_with("nodetool: unknown format 'yaml': use text or json\n"), "{out}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_node_of_another_build_is_told_of() {
    let dir = dir("build");
    let answer = "helenus-admin 3\n{\"shown\":{\"weather\":1},\"refusal\":null}\n";
    let asked = node(&dir.join("data"), answer);
    let (code, out, err) = said(&nodetool(&dir, &["info"]));
    assert_eq!((code, out.as_str()), (2, ""));
    let wanted = "error: cannot read the node's answer: this nodetool does not know it: unknown variant `weather`";
    assert!(err.starts_with(wanted), "{err}");
    asked.join().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_node_of_another_version_is_named() {
    let dir = dir("version");
    let asked = node(&dir.join("data"), "helenus-admin 9\n");
    let (code, _, err) = said(&nodetool(&dir, &["info"]));
    assert_eq!(
        (code, err.as_str()),
        (
            2,
            "error: the node speaks 'helenus-admin 9', this nodetool 'helenus-admin 3'; use the nodetool of the node's release\n"
        )
    );
    asked.join().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_needs_no_node() {
    let dir = dir("none");
    let run = |args: &[&str]| said(&nodetool(&dir, args));
    let (code, out, err) = run(&["info"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("nodetool: Failed to connect to './data/admin.sock': "), "{err}");
    let hint = "See 'nodetool help' or 'nodetool help <command>'.\n";
    let unknown = format!("nodetool: Found unexpected parameters: [bogusverb]\n{hint}");
    assert_eq!(run(&["bogusverb"]), (1, unknown, String::new()));
    let option = format!("nodetool: Found unexpected parameters: [--bogus]\n{hint}");
    assert_eq!(run(&["info", "--bogus"]), (1, option, String::new()));
    let unsupported =
        "nodetool: gcstats is not supported: there is no garbage collector\n".to_owned();
    assert_eq!(run(&["gcstats"]), (2, unsupported, String::new()));
    let (code, out, _) = run(&["repair", "-pr", "-j", "x"]);
    assert_eq!(code, 1);
    assert!(out.starts_with("nodetool: job_threads: can not convert \"x\" to a int\n"), "{out}");
    assert!(run(&["help", "repair"]).1.contains("--watch <command>"));
    let overview = run(&[]);
    assert!(overview.0 == 0 && overview.1.starts_with("usage: nodetool [--data-dir <dir>]"));
    assert_eq!(run(&["help"]), overview);
    assert_eq!(run(&["--help"]), overview);
    assert_eq!(run(&["help", "bogus"]), (0, "Unknown command bogus\n".into(), String::new()));
    // nobody listens there
    let refused = "nodetool: Failed to connect to '127.0.0.1:1' - ConnectException: 'Connection \
                   refused'.\n";
    assert_eq!(run(&["-p", "1", "info"]), (1, String::new(), refused.to_owned()));
    let unknown = "nodetool: Failed to connect to 'nosuch.invalid:7199' - UnknownHostException: \
                   'nosuch.invalid'.\n";
    assert_eq!(run(&["-h", "nosuch.invalid", "info"]), (1, String::new(), unknown.to_owned()));
    let number = format!("nodetool: For input string: \"x\"\n{hint}");
    assert_eq!(run(&["-p", "x", "info"]), (1, number, String::new()));
    let (code, _, err) = run(&["--ssl", "--keystore", "/k.pem", "info"]);
    assert!(code == 2 && err.starts_with("error: --ssl needs --truststore FILE"), "{err}");
    assert_eq!(run(&["--data-dir"]).0, 1);
    std::fs::remove_dir_all(dir).unwrap();
}
