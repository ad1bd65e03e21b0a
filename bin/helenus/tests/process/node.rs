//! The real binary, on a loopback address and in a directory of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take: debug builds on busy machines.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A place for a test: a directory that goes at its end, and addresses that no other test has.
pub struct Place {
    pub dir: PathBuf,
    number: u8,
}

impl Place {
    /// `number` is another one in each test.
    pub fn new(number: u8) -> Self {
        let name = format!("helenus-process-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self { dir, number }
    }

    pub fn ip(&self) -> String {
        let [.., a, b] = std::process::id().to_be_bytes();
        format!("127.{}.{a}.{b}", 100 + self.number)
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// A node here, with more arguments.
    pub fn start(&self, more: &[&str]) -> Node {
        Node::start(&self.ip(), &self.data(), more)
    }

    /// A node here that serves.
    pub fn serve(&self, more: &[&str]) -> Node {
        let node = self.start(more);
        let line = node.line("Starting listening");
        let serves = format!("Starting listening for CQL clients on /{}:9042 (", node.ip);
        assert!(line.starts_with(&serves), "{line}");
        node
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A running node; it is killed when this value goes.
pub struct Node {
    pub ip: String,
    data: PathBuf,
    child: Child,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

impl Node {
    /// Starts a node with two shards and metrics on its own address.
    pub fn start(ip: &str, data: &Path, more: &[&str]) -> Self {
        let metrics = format!("metrics_address={ip}");
        Self::start_plain(ip, data, &[&["--set", metrics.as_str()], more].concat())
    }

    /// The same, with metrics where they are by default.
    pub fn start_plain(ip: &str, data: &Path, more: &[&str]) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_helenus")), ip, data, more)
    }

    /// The same, by a command that ends in the binary's name.
    pub fn start_by(mut command: Command, ip: &str, data: &Path, more: &[&str]) -> Self {
        let mut child = command
            .arg("--data-dir")
            .arg(data)
            .args(["--listen", ip, "--shards", "2", "--set", "memory_budget=256MiB"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // of a line of the log what it says
                let said = line.split_once(" - ").map(|(_, said)| said.to_owned());
                let _ = send.send(said.unwrap_or(line));
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let (ip, data) = (ip.to_owned(), data.to_path_buf());
        Self { ip, data, child, lines, errors: Some(errors) }
    }

    /// Waits for a line that starts so.
    pub fn line(&self, start: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(start) => return line,
                Ok(_) => {}
                Err(error) => panic!("no line '{start}': {error}"),
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Waits for the end: the exit code (none after a signal), and what was said on standard error.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let end = Instant::now() + PATIENCE;
        // Its standard output closes with it.
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the node does not end"),
            }
        }
        let code = self.child.wait().unwrap().code();
        (code, self.errors.take().unwrap().join().unwrap())
    }

    /// It ends by itself, having said why in one line.
    pub fn refuses(self) -> String {
        let (code, errors) = self.ended();
        assert_eq!(code, Some(1), "{errors}");
        let lines: Vec<&str> = errors.lines().collect();
        assert_eq!(lines.len(), 1, "one line: {errors}");
        assert!(errors.starts_with("helenus: "), "{errors}");
        errors
    }

    /// SIGTERM; it ends in order.
    pub fn stop(self) {
        self.signal("-TERM");
        let (code, errors) = self.ended();
        assert_eq!(code, Some(0), "{errors}");
    }

    /// A verb of nodetool, through the node's socket: exit code, standard output, standard error.
    pub fn nodetool(&self, words: &[&str]) -> (u8, String, String) {
        let mut stream = UnixStream::connect(self.data.join(admin::socket::NAME)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = admin::client::call(&mut stream, &words, &mut out, &mut err).unwrap();
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    /// A verb that succeeds; what it prints.
    pub fn verb(&self, words: &[&str]) -> String {
        let (code, out, err) = self.nodetool(words);
        assert_eq!((code, err.as_str()), (0, ""), "{words:?}: {out}");
        out
    }

    /// The text at `/metrics`.
    pub fn metrics(&self) -> String {
        self.page("/metrics")
    }

    /// The text at a path of the metrics endpoint.
    pub fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect((self.ip.as_str(), 7070)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.ip).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        body.to_owned()
    }

    /// A metric's value.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
    }
}

impl Drop for Node {
    /// A test that fails shows what its node said last.
    fn drop(&mut self) {
        let before = self.child.try_wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{} had ended: {before:?}", self.ip);
            self.lines.iter().for_each(|line| println!("{}: {line}", self.ip));
            let errors = self.errors.take().and_then(|errors| errors.join().ok());
            println!("{}: {}", self.ip, errors.unwrap_or_default());
        }
    }
}
