//! Programs of the operator's.

use std::io;
use std::process::{Command, Stdio};

use crate::env::{Env, Make};
use crate::file::File;
use crate::open_options::OpenOptions;
use crate::real::helper;

/// Bytes of a program's output that an error shows.
const OUTPUT_SHOWN: usize = 1024;
/// The largest file that a simulated `cp` copies.
const COPY_BYTES_MAX: u64 = 1 << 30;

impl Env {
    /// Runs a program with its arguments until it ends, on a thread of its own: it may take its
    /// time. A simulated node knows `cp FROM TO`, `ln FROM TO`, `true` and `false`, wherever they
    /// lie.
    ///
    /// # Errors
    /// If it cannot be started or ends with a code other than 0: with the beginning of what it
    /// said.
    pub async fn run_program(&self, command: Vec<String>) -> io::Result<()> {
        match &self.0.make {
            Make::Real(_) => helper::alone("program", move || run(&command))?.await,
            Make::Sim(_) => self.simulate(&command).await,
        }
    }

    async fn simulate(&self, command: &[String]) -> io::Result<()> {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let name = words.first().map_or("", |path| path.rsplit('/').next().unwrap_or(path));
        match (name, words.get(1..).unwrap_or_default()) {
            ("true", _) => Ok(()),
            ("ln", [from, to]) => self.hard_link(from, to).await,
            ("cp", [from, to]) => {
                let bytes = self.read_file(from, COPY_BYTES_MAX).await?;
                let options = OpenOptions { truncate: true, ..OpenOptions::READ_WRITE };
                let file = File::open(self, to, options).await?;
                file.write_all_at(bytes, 0).await.0
            }
            ("false", _) => Err(failed(command, 1, b"")),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn run(command: &[String]) -> io::Result<()> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut run = Command::new(program);
    let output = run.args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(failed(command, output.status.code().unwrap_or(-1), &said))
}

fn failed(command: &[String], code: i32, said: &[u8]) -> io::Error {
    let shown = said.get(..OUTPUT_SHOWN).unwrap_or(said);
    io::Error::other(format!(
        "Exception while executing the command: {}, command error Code: {code}, command output: {}",
        command.join(" "),
        String::from_utf8_lossy(shown).trim_end()
    ))
}
