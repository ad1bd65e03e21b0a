//! `nodetool`: the operator's client. It checks the command line, sends the verb to the node's
//! socket and prints the value that the node answers with: as Cassandra's nodetool does, or as
//! JSON.
//!
//! A program of one blocking conversation: it uses std's unix socket directly, without crate `env`.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use admin::client::{self, ClientError};
use admin::{Command, VerbError, help, socket};
use clap::Parser;

/// Exit codes of Cassandra's nodetool; an unreachable node is bad use too.
const BAD_USE: u8 = 1;
const FAILURE: u8 = 2;

/// Manage a Helenus node.
#[derive(Debug, Parser)]
#[command(name = "nodetool", disable_help_flag = true, disable_help_subcommand = true)]
struct Options {
    /// The node's data directory, where its socket is.
    #[arg(long, value_name = "DIR", default_value = "./data")]
    data_dir: PathBuf,
    /// Show nodes with their ports.
    #[arg(long)]
    print_port: bool,
    /// Output format: text or json.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Not supported, as -p, -u, -pw and -pwf: nodetool reaches the node by its socket.
    #[arg(short = 'h', long, value_name = "HOST")]
    host: Option<String>,
    #[arg(short, long, value_name = "PORT")]
    port: Option<String>,
    #[arg(short, long, value_name = "USER")]
    username: Option<String>,
    #[arg(long, value_name = "PASSWORD")]
    password: Option<String>,
    #[arg(long, value_name = "FILE")]
    password_file: Option<String>,
    /// Print this help.
    #[arg(long)]
    help: bool,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "VERB ARGS")]
    words: Vec<String>,
}

fn main() -> ExitCode {
    let options = match Options::try_parse_from(std::env::args_os().map(long_option)) {
        Ok(options) => options,
        Err(e) => {
            let _ = e.print();
            return BAD_USE.into();
        }
    };
    match run(options, &mut io::stdout().lock(), &mut io::stderr().lock()) {
        Ok(code) => code.into(),
        // The reader went away: nobody to tell.
        Err(_) => FAILURE.into(),
    }
}

/// Cassandra's options of one dash and several letters, as options that clap knows.
fn long_option(word: OsString) -> OsString {
    match word.to_str() {
        Some("-pp") => "--print-port".into(),
        Some("-pw") => "--password".into(),
        Some("-pwf") => "--password-file".into(),
        _ => word,
    }
}

/// Does what the command line says; the error is that of printing.
fn run(options: Options, out: &mut impl Write, err: &mut impl Write) -> io::Result<u8> {
    let jmx = [
        ("-h", &options.host),
        ("-p", &options.port),
        ("-u", &options.username),
        ("-pw", &options.password),
        ("-pwf", &options.password_file),
    ];
    if let Some((name, _)) = jmx.iter().find(|(_, value)| value.is_some()) {
        let how = "nodetool reaches the node by the socket in its data directory (--data-dir)";
        writeln!(err, "nodetool: {name} is not supported: {how}")?;
        return Ok(FAILURE);
    }
    let mut words = options.words;
    if options.help || words.first().is_some_and(|verb| verb == "help") {
        let verb = if options.help { words.first() } else { words.get(1) };
        out.write_all(help(verb.map(String::as_str)).as_bytes())?;
        return Ok(0);
    }
    if options.print_port && !words.is_empty() {
        words.insert(0, "--print-port".to_owned());
    }
    if let Some(format) = options.format {
        words.splice(0..0, ["--format".to_owned(), format]);
    }
    match Command::parse(&words) {
        Ok(_) => ask(&options.data_dir, &words, out, err),
        Err(e) => refuse(&e, out),
    }
}

fn refuse(e: &VerbError, out: &mut impl Write) -> io::Result<u8> {
    out.write_all(e.text().as_bytes())?;
    Ok(e.exit_code())
}

fn ask(
    data_dir: &Path,
    words: &[String],
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<u8> {
    let path = data_dir.join(socket::NAME);
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(e) => {
            let path = path.display();
            writeln!(
                err,
                "nodetool: Failed to connect to '{path}': {e}. Check that the node runs, and that \
                 --data-dir is its data_dir."
            )?;
            return Ok(BAD_USE);
        }
    };
    match client::call(&mut stream, words, out, err) {
        Ok(code) => Ok(code),
        Err(ClientError::Output(e)) => Err(e),
        Err(e) => {
            writeln!(err, "error: {e}")?;
            Ok(FAILURE)
        }
    }
}
