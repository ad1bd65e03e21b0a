//! `campaign differences`: faults are planted in the answers of a node on their way to the
//! comparison (`conformance/oracle/planted.py`), one kind at a time; the corpus must find each.

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::oracle;

/// The node's address.
const OURS: &str = "127.0.0.33";

/// `campaign differences`: recorded under `docs/campaigns/`.
pub fn campaign() -> Outcome {
    machine::need(&["python3"])?;
    node::build()?;
    let node = Node::start("differences", OURS)?;
    let known = machine::root().join(oracle::KNOWN_DIFFERENCES);
    let (found, table) = machine::output(
        oracle::command().args(["--golden", &node.ip, "--planted", "--known"]).arg(known),
    )?;
    let text = format!(
        "Commit {}. Each kind of fault was put into the answers of a node while the corpus ran against the recorded answers:\n\
         in how many answers, how many statements then differed, and the first of them.\n\n```\n{table}```\n",
        super::commit()?
    );
    super::record("differences", &text)?;
    if found { Ok(()) } else { Err("the corpus did not find all".into()) }
}
