//! What `nodetool plan` prints; Cassandra has no such verb.

use crate::common;

use admin::{Verb, help};
use common::{Fake, say_with};

#[test]
fn a_plan_is_read_from_top_to_bottom() {
    let (reply, done) = say_with(Fake::default(), "plan add --nodes 2 --rack r2 --dc dc2");
    assert_eq!((reply.exit, reply.err.as_str()), (0, ""));
    assert_eq!(
        done,
        ["plan Add(NewNodes { count: 2, data_center: Some(\"dc2\"), rack: Some(\"r2\"), \
          num_tokens: None })"]
    );
    assert_eq!(reply.out, include_str!("../testdata/nodetool/plan.txt"));
}

#[test]
fn failures_stand_side_by_side() {
    let (reply, done) = say_with(Fake::default(), "plan failures --nodes 4 --tokens 1");
    assert_eq!(done, ["Failing { nodes: 4, racks: 2, num_tokens: Some(1) }"]);
    assert_eq!(
        reply.out,
        "Chance that some range of ks lacks\n  \
         what          when these fail  16 tokens  1 token\n  \
         QUORUM        1 node           0%         0%\n  \
         QUORUM        3 nodes          ~47.1%     10.0%\n  \
         all replicas  2 racks          100%       -\n\
         \nNotes:\n  All choices are equally likely.\n"
    );
}

#[test]
fn sub_verbs_have_their_arguments() {
    let done = |line: &str| say_with(Fake::default(), line).1.concat();
    assert_eq!(done("plan decommission"), "plan Decommission { node: None }");
    assert_eq!(done("plan removenode abc"), "plan RemoveNode { host: \"abc\" }");
    assert_eq!(done("plan move -- -7"), "plan Move { token: \"-7\" }");
    assert!(done("plan add").contains("count: 1, data_center: None, rack: None, num_tokens: None"));
    assert_eq!(done("plan failures"), "Failing { nodes: 3, racks: 2, num_tokens: None }");
    let (reply, _) = say_with(Fake::default(), "plan decommission 10.0.0.7");
    assert_eq!((reply.exit, reply.err.as_str()), (1, ""));
    assert!(reply.out.contains("10.0.0.7 is no node of the ring"), "{}", reply.out);
    for (line, why) in [
        ("plan", "plan needs one of: add, decommission, removenode, move, failures"),
        ("plan repair", "plan needs one of: add"),
        ("plan move", "Required parameters are missing: new token"),
        ("plan removenode", "Required parameters are missing: ID"),
        ("plan add --nodes 0", "--nodes must be a number from 1 on, not 0"),
        ("plan add --tokens x", "--tokens must be a number from 1 on, not x"),
        ("plan failures --racks 9", "--racks must be a number from 1 to 8, not 9"),
        ("plan add new", "Found unexpected parameters: [new]"),
    ] {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let error = Verb::parse(&words).unwrap_err();
        assert_eq!(error.exit_code(), 1, "{line}");
        assert!(error.text().contains(why), "{line}: {}", error.text());
    }
    assert!(help(Some("plan")).contains("plan add [--nodes <count>] [--dc <datacenter>]"));
}
