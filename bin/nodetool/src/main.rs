//! `nodetool`: Cassandra's verbs over the node's operator API; see the library.
#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (out, err) = (&mut io::stdout().lock(), &mut io::stderr().lock());
    match nodetool::main_with(std::env::args_os(), out, err) {
        Ok(code) => code.into(),
        // The reader went away: nobody to tell.
        Err(_) => nodetool::FAILURE.into(),
    }
}
