//! What `conformance/roles/door.py` tries at the door of a node: logins, and who may do what.

use std::process::Command;

use crate::machine::{self, Outcome};
use crate::node;

/// Where the node listens.
const IP: &str = "127.0.0.31";

/// The tries at the door, or those named, with latencies judged or not: (did all go well, what was
/// printed).
pub fn run(names: &[&str], measured: bool) -> Outcome<(bool, String)> {
    let mut door = Command::new(machine::python()?);
    door.arg(machine::root().join("conformance/roles/door.py"));
    door.arg(node::command().get_program()).arg(IP);
    door.arg(machine::cache().join("run/roles-door")).args(names);
    if measured {
        door.env("MEASURE", "1");
    }
    machine::output(&mut door)
}
