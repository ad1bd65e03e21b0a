//! What `nodetool` does: Cassandra's verbs over the node's operator API. Sends a verb to the node
//! and prints the value that the node answers with: as Cassandra's nodetool does, or as JSON.
//!
//! It reaches the node by the socket in its data directory, or over the network where the command
//! line names a host or a port. A program of one blocking conversation: it uses std's sockets
//! directly, without crate `env`.
#![forbid(unsafe_code)]

mod network;
mod password;
mod ssl;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use admin::client::{self, ClientError};
use admin::wire::Login;
use admin::{Command, VerbError, help, socket};
use clap::Parser;
use tls::ClientOptions;

use network::Unreached;

/// Exit codes of Cassandra's nodetool; an unreachable node is bad use too.
const BAD_USE: u8 = 1;
/// What failed.
pub const FAILURE: u8 = 2;
/// Where a node has its data by default.
const DATA_DIR: &str = "./data";

/// Manage a Helenus node.
#[derive(Debug, Parser)]
#[command(name = "nodetool", disable_help_flag = true, disable_help_subcommand = true)]
struct Options {
    /// The node's data directory, where its socket is [default: ./data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Show nodes with their ports; short: -pp.
    #[arg(long)]
    print_port: bool,
    /// Output format: text or json.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The node's admin_address, over the network.
    #[arg(short = 'h', long, value_name = "HOST")]
    host: Option<String>,
    /// Its admin_port.
    #[arg(short, long, value_name = "PORT")]
    port: Option<String>,
    /// The superuser to log in as.
    #[arg(short, long, value_name = "USER")]
    username: Option<String>,
    /// Its password; short: -pw. Others see it in the list of processes: rather use -pwf.
    #[arg(long, value_name = "PASSWORD")]
    password: Option<String>,
    /// A file of lines `user password`; short: -pwf.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Use TLS.
    #[arg(long)]
    ssl: bool,
    /// Certificates of whom to trust, PEM or PKCS#12.
    #[arg(long, value_name = "FILE")]
    truststore: Option<PathBuf>,
    #[arg(long, value_name = "PASSWORD")]
    truststore_password: Option<String>,
    /// Key and certificate to show to the node, PEM or PKCS#12.
    #[arg(long, value_name = "FILE")]
    keystore: Option<PathBuf>,
    #[arg(long, value_name = "PASSWORD")]
    keystore_password: Option<String>,
    /// Take a certificate of the node that is of another host.
    #[arg(long)]
    ssl_any_host: bool,
    /// Print this help.
    #[arg(long)]
    help: bool,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "VERB ARGS")]
    words: Vec<String>,
}

/// Does what a command line says, with the program's name first, and gives the exit code.
///
/// # Errors
/// If `out` or `err` takes nothing.
pub fn main_with(
    line: impl Iterator<Item = OsString>,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<u8> {
    let line = line.filter(|word| !is_of_jvm(word)).map(long_option);
    match Options::try_parse_from(line) {
        Ok(options) => run(options, out, err),
        Err(e) => {
            write!(err, "{}", e.render())?;
            Ok(BAD_USE)
        }
    }
}

/// An option of a JVM means nothing here. Cassandra's script takes them wherever they stand, and
/// Medusa gives one.
fn is_of_jvm(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.starts_with("-D"))
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
fn run(mut options: Options, out: &mut impl Write, err: &mut impl Write) -> io::Result<u8> {
    let mut words = std::mem::take(&mut options.words);
    if options.help || words.first().is_some_and(|verb| verb == "help") {
        let verb = if options.help { words.first() } else { words.get(1) };
        out.write_all(help(verb.map(String::as_str)).as_bytes())?;
        return Ok(0);
    }
    if options.print_port && !words.is_empty() {
        words.insert(0, "--print-port".to_owned());
    }
    if let Some(format) = options.format.take() {
        words.splice(0..0, ["--format".to_owned(), format]);
    }
    if let Err(e) = Command::parse(&words) {
        return refuse(&e, out);
    }
    let is_remote = options.host.is_some() || options.port.is_some() || options.ssl;
    match is_remote {
        true => ask_over_network(options, &words, out, err),
        false => {
            let dir = options.data_dir.unwrap_or_else(|| DATA_DIR.into());
            ask_by_socket(&dir, &words, out, err)
        }
    }
}

fn refuse(e: &VerbError, out: &mut impl Write) -> io::Result<u8> {
    out.write_all(e.text().as_bytes())?;
    Ok(e.exit_code())
}

/// A node over the network, and how to talk to it.
struct Target {
    host: String,
    port: u16,
    login: Option<Login>,
    tls: Option<ClientOptions>,
}

impl Target {
    /// What the command line says; else what nodetool says of it, with its exit code.
    fn of(options: &Options) -> Result<Self, (String, u8)> {
        let port = options.port.as_deref().unwrap_or(network::PORT);
        let port = network::port(port).map_err(|what| (what, BAD_USE))?;
        let failed = |error: io::Error| (error.to_string(), FAILURE);
        let login = password::login(password::Given {
            user: options.username.as_deref(),
            password: options.password.as_deref(),
            file: options.password_file.as_deref(),
        });
        let stores = ssl::Stores {
            truststore: options.truststore.clone(),
            truststore_password: options.truststore_password.clone(),
            keystore: options.keystore.clone(),
            keystore_password: options.keystore_password.clone(),
        };
        let tls = options.ssl.then(|| stores.read(options.ssl_any_host)).transpose();
        let host = options.host.as_deref().unwrap_or(network::HOST).to_owned();
        Ok(Self { host, port, login: login.map_err(failed)?, tls: tls.map_err(failed)? })
    }

    /// Says that the node is not reached, in the words of Cassandra's nodetool.
    fn unreached(&self, exception: &str, message: &str, err: &mut impl Write) -> io::Result<u8> {
        let Self { host, port, .. } = self;
        let what = format!("{exception}: '{message}'");
        writeln!(err, "nodetool: Failed to connect to '{host}:{port}' - {what}.")?;
        Ok(BAD_USE)
    }

    /// Asks over a connection.
    fn ask(
        &self,
        stream: network::Stream,
        words: &[String],
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> io::Result<u8> {
        let Some(tls) = &self.tls else {
            let mut stream = stream;
            return self.talk(&mut stream, words, out, err);
        };
        match tls.dial(network::bare(&self.host), stream, unix_micros()) {
            Ok(mut stream) => self.talk(&mut stream, words, out, err),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                writeln!(err, "error: {error}")?;
                Ok(FAILURE)
            }
            Err(error) => {
                let (exception, message) = ClientOptions::fault(&error);
                self.unreached(exception, &message, err)
            }
        }
    }

    fn talk(
        &self,
        stream: &mut (impl Read + Write),
        words: &[String],
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> io::Result<u8> {
        match client::call_as(stream, self.login.as_ref(), words, (&mut *out, &mut *err)) {
            Err(ClientError::NotLetIn { exception, message }) => {
                self.unreached(&exception, &message, err)
            }
            // a certificate that the node does not accept ends the connection only now
            Err(ClientError::Io(error)) if self.tls.is_some() => {
                let (exception, message) = ClientOptions::fault(&error);
                self.unreached(exception, &message, err)
            }
            Err(ClientError::Closed) if self.tls.is_none() => {
                let what = "the node closed the connection; where its port has TLS, use --ssl";
                self.unreached("EOFException", what, err)
            }
            other => finish(other, err),
        }
    }
}

fn ask_over_network(
    options: Options,
    words: &[String],
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<u8> {
    let target = match Target::of(&options) {
        Ok(target) => target,
        Err((what, BAD_USE)) => return refuse(&VerbError::Arguments(what), out),
        Err((what, code)) => {
            writeln!(err, "error: {what}")?;
            return Ok(code);
        }
    };
    match network::connect(&target.host, target.port) {
        Ok(stream) => target.ask(stream, words, out, err),
        Err(Unreached { exception, message, is_refused }) => match options.data_dir {
            // the node of another machine is never another than the one asked for
            Some(dir) if is_refused && network::is_loopback(&target.host) => {
                ask_by_socket(&dir, words, out, err)
            }
            _ => target.unreached(exception, &message, err),
        },
    }
}

fn ask_by_socket(
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
    let answer = client::call(&mut stream, words, out, &mut *err);
    finish(answer, err)
}

fn finish(answer: Result<u8, ClientError>, err: &mut impl Write) -> io::Result<u8> {
    match answer {
        Ok(code) => Ok(code),
        Err(ClientError::Output(e)) => Err(e),
        Err(e) => {
            writeln!(err, "error: {e}")?;
            Ok(FAILURE)
        }
    }
}

/// By which the node's certificate is to be good.
fn unix_micros() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "a program of its own, without crate env")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.ok().and_then(|since| i64::try_from(since.as_micros()).ok()).unwrap_or_default()
}
