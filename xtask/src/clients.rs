//! Clients of a ring that read and write while its nodes come and go: `load ring` of `bench/load`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::load;
use crate::machine::{self, Outcome};
use crate::members::Member;
use crate::network;

/// How long they may take to say what they are asked, or to have written their first rows.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);

/// Some, while they run.
pub struct Clients {
    child: Child,
    out: PathBuf,
    windows: usize,
}

/// What they saw for a while; latencies are in milliseconds.
pub struct Window {
    pub failed: u64,
    pub p99: f64,
    pub worst: f64,
    /// Of reads alone.
    pub reads_p99: f64,
}

impl Clients {
    /// Runs them so many seconds over the rows of an earlier run (`run`), or compares those
    /// (`compare`).
    pub fn again(members: &[&Member], only: &str, seconds: u64) -> Outcome {
        let mut load = Command::new(load::build()?);
        load.args(["ring", &seconds.to_string()])
            .args(members.iter().map(|member| &member.ip))
            .args(["--keep", "--only", only]);
        let (done, said) = machine::output(&mut load)?;
        let last = said.lines().last().unwrap_or_default().to_owned();
        if done { Ok(()) } else { Err(last.into()) }
    }

    /// Starts them, and waits until there are rows to read.
    pub fn start(members: &[Member], options: &[&str]) -> Outcome<Self> {
        Self::start_in(None, "user", &members.iter().collect::<Vec<_>>(), options)
    }

    /// The same in a network namespace, with a name for their rows.
    pub fn start_in(
        network: Option<&str>,
        name: &str,
        members: &[&Member],
        options: &[&str],
    ) -> Outcome<Self> {
        let dir = machine::cache().join("run");
        let at = |kind: &str| dir.join(format!("load-{name}.{kind}"));
        let (out, errors) = (at("out"), at("err"));
        let mut load = Command::new(load::build()?);
        load.args(["ring", "-"])
            .args(members.iter().map(|member| &member.ip))
            .args(["--name", name])
            .args(options);
        let child = network::within(network, load)
            .stdin(Stdio::piped())
            .stdout(File::create(&out)?)
            .stderr(File::create(errors)?)
            .spawn()?;
        let mut clients = Self { child, out, windows: 0 };
        clients.until(|said| said.contains("running"))?;
        Ok(clients)
    }

    fn said(&self) -> Outcome<String> {
        let mut text = String::new();
        File::open(&self.out)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn until(&mut self, holds: impl Fn(&str) -> bool) -> Outcome<String> {
        let until = Instant::now() + SILENCE_LIMIT;
        loop {
            let said = self.said()?;
            if holds(&said) {
                return Ok(said);
            }
            if Instant::now() > until {
                return Err(format!("the clients say nothing: see {}", self.out.display()).into());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("the clients ended: {status}").into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What they saw since the last one.
    pub fn window(&mut self) -> Outcome<Window> {
        let stdin = self.child.stdin.as_mut().ok_or("the clients listen no more")?;
        writeln!(stdin, "{}", self.windows)?;
        let begin = format!("{{\"window\": \"{}\"", self.windows);
        self.windows += 1;
        let is_it = |line: &&str| line.starts_with(&begin) && line.ends_with('}');
        let said = self.until(|said| said.lines().any(|line| is_it(&line)))?;
        let line = said.lines().find(is_it).unwrap_or_default();
        println!("{line}");
        let number = |name: &str| load::figure(line, name);
        Ok(Window {
            failed: number("failed")? as u64,
            p99: number("p99")?,
            worst: number("worst")?,
            reads_p99: number("reads_p99")?,
        })
    }

    /// Lets them end: no more is read or written until all rows are compared.
    pub fn rest(&mut self) -> Outcome {
        let stdin = self.child.stdin.as_mut().ok_or("the clients listen no more")?;
        writeln!(stdin, "end")?;
        self.until(|said| said.lines().any(|line| line == "ended")).map(drop)
    }

    /// Lets them compare all rows: (is all well, what they found).
    pub fn end(mut self) -> Outcome<(bool, String)> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        let said = self.said()?;
        Ok((status.success(), said.lines().last().unwrap_or_default().to_owned()))
    }
}
