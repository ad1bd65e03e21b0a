//! The text of `nodetool help`.

use std::fmt::Write;

use super::names::{NOT_SERVED, SERVED};

/// Arguments and options of the verbs that take some.
const USES: &[(&str, &str)] = &[
    ("assassinate", "<ip_address>"),
    ("bootstrap", "resume (-f | --force)"),
    ("cleanup", "[-j <jobs>] [<keyspace> [<table>...]]"),
    (
        "clearsnapshot",
        "(-t <name> | --all [--older-than <duration> | --older-than-timestamp <time>]) [<keyspace>...]",
    ),
    ("clientstats", "[--all] [--by-protocol] [--clear-history] [--client-options]"),
    ("compact", "[-s | --split-output] [<keyspace> [<table>...]] | --user-defined <file>..."),
    ("compactionhistory", "[-F json | yaml]"),
    ("compactionstats", "[-H | --human-readable] [-V | --vtable]"),
    ("datapaths", "[-F json | yaml] [<keyspace>[.<table>]...]"),
    ("decommission", "[-f | --force]"),
    ("describering", "<keyspace>"),
    ("disableautocompaction", "[<keyspace> [<table>...]]"),
    ("disablebinary", "[-f | --force]"),
    ("disablehintsfordc", "<datacenter>"),
    ("doctor", "[--json]"),
    (
        "enableauditlog",
        "[--logger <class>] [--included-keyspaces <names>] [--excluded-keyspaces <names>] \
         [--included-categories <names>] [--excluded-categories <names>] \
         [--included-users <names>] [--excluded-users <names>] [--roll-cycle <cycle>] \
         [--blocking true | false] [--max-queue-weight <bytes>] [--max-log-size <bytes>]",
    ),
    ("enableautocompaction", "[<keyspace> [<table>...]]"),
    (
        "enablefullquerylog",
        "[--path <directory>] [--roll-cycle <cycle>] [--blocking true | false] \
         [--max-queue-weight <bytes>] [--max-log-size <bytes>]",
    ),
    ("enablehintsfordc", "<datacenter>"),
    ("flush", "[<keyspace> [<table>...]]"),
    ("garbagecollect", "[-g ROW | CELL] [-j <jobs>] [<keyspace> [<table>...]]"),
    ("getauthcacheconfig", "--cache-name <cache-name>"),
    ("getcompactionthreshold", "<keyspace> <table>"),
    ("getcompactionthroughput", "[-d | --precise-mib]"),
    ("getendpoints", "<keyspace> <table> <key>"),
    ("getguardrailsconfig", "[(-c | --category) <category>] [--expand] [<guardrail>]"),
    (
        "getinterdcstreamthroughput",
        "[-e | --entire-sstable-throughput] [-m | --mib] [-d | --precise-mbit]",
    ),
    ("getsstables", "[-hf | --hex-format] [-l | --show-levels] <keyspace> <table> <key>"),
    (
        "getstreamthroughput",
        "[-e | --entire-sstable-throughput] [-m | --mib] [-d | --precise-mbit]",
    ),
    ("gettimeout", "<timeout_type>"),
    ("import", "[-l] [-v] [-q] [-cd] <keyspace> <table> <directory>..."),
    ("info", "[-T | --tokens]"),
    ("invalidatecredentialscache", "[<role>...]"),
    ("invalidatepermissionscache", "[<role>]"),
    ("invalidaterolescache", "[<role>...]"),
    ("iostats", "[-s <seconds>] [-F json [--windows]]"),
    ("listsnapshots", "[-nt | --no-ttl] [-e | --ephemeral]"),
    ("move", "<new token>"),
    ("netstats", "[-H | --human-readable]"),
    (
        "plan",
        "add [--nodes <count>] [--dc <datacenter>] [--rack <rack>] [--tokens <num_tokens>] \
         | decommission [<address> | <ID>] | removenode <ID> | move <new token> \
         | failures [--nodes <most>] [--racks <most>] [--tokens <num_tokens>]",
    ),
    (
        "profileload",
        "[-s <capacity>] [-k <top>] [-a <samplers>] [-i <interval> | -t | -l] \
         [<keyspace> <table | *>] [<duration in ms>]",
    ),
    (
        "rebuild",
        "[-ks <keyspace>] [-ts <tokens>] [-s <sources>] [--exclude-local-dc] [<src-dc-name>]",
    ),
    ("refresh", "<keyspace> <table>"),
    ("relocatesstables", "[-j <jobs>] [<keyspace> [<table>...]]"),
    ("removenode", "<status> | <force> | <ID>"),
    (
        "repair",
        "[-full | --full] [-pr | --partitioner-range] [-st | --start-token <token>] \
         [-et | --end-token <token>] [-seq | --sequential] [-dcpar | --dc-parallel] \
         [-local | --in-local-dc] [-dc | --in-dc <datacenter>]... [-hosts | --in-hosts <host>]... \
         [-force | --force] [-prv | --preview] [-vd | --validate] [-j | --job-threads <1 to 4>] \
         [-tr | --trace] [-pl | --pull] [-os | --optimise-streams] [-skip-paxos] [-paxos-only] \
         [-iuk | --ignore-unreplicated-keyspaces] [<keyspace> [<table>...]] | --watch <command>",
    ),
    (
        "repair_admin",
        "[list [-a | --all] [-st <token>] [-et <token>]] \
         | cancel (-s | --session) <session> [-f | --force] \
         | cleanup [-f | --force] [-st <token>] [-et <token>] [<keyspace> [<table>...]] \
         | summarize-pending [-v | --verbose] [-st <token>] [-et <token>] \
         [<keyspace> [<table>...]] \
         | summarize-repaired [-v | --verbose] [-st <token>] [-et <token>] \
         [<keyspace> [<table>...]]",
    ),
    ("ring", "[<keyspace>]"),
    (
        "scrub",
        "[-ns | --no-snapshot] [-s | --skip-corrupted] [-n | --no-validate] [-j <jobs>] [<keyspace> [<table>...]]",
    ),
    (
        "setauthcacheconfig",
        "--cache-name <cache-name> [--validity-period <ms>] [--update-interval <ms>] \
         [--max-entries <count>] [--disable-active-update]",
    ),
    ("setcachecapacity", "<key-cache-capacity> <row-cache-capacity> <counter-cache-capacity>"),
    ("setcompactionthreshold", "<keyspace> <table> <minthreshold> <maxthreshold>"),
    ("setcompactionthroughput", "<mebibytes_per_second>"),
    ("setconcurrentcompactors", "<count>"),
    ("setdefaultrf", "<default_rf>"),
    ("setguardrailsconfig", "<guardrail> <value>..."),
    ("sethintedhandoffthrottlekb", "<value_in_kb_per_sec>"),
    ("setinterdcstreamthroughput", "[-e | --entire-sstable-throughput] [-m | --mib] <value_in_mb>"),
    ("setlogginglevel", "[<component|class> [<level>]]"),
    ("setmaxhintwindow", "<value_in_ms>"),
    ("setstreamthroughput", "[-e | --entire-sstable-throughput] [-m | --mib] <value_in_mb>"),
    ("settimeout", "<timeout_type> <timeout_in_ms>"),
    ("settraceprobability", "<value>"),
    (
        "snapshot",
        "[-t <name>] [--ttl <duration>] [-sf] [<keyspace>... | --table <table> <keyspace> | -kt <keyspace.table>,...]",
    ),
    ("status", "[<keyspace>]"),
    ("statusautocompaction", "[-a | --all] [<keyspace> [<table>...]]"),
    ("stop", "[<compaction_type> | -id <compaction_id>]"),
    ("tablehistograms", "[<keyspace> <table> | <keyspace.table>]"),
    (
        "tablestats",
        "[-i] [-H | --human-readable] [-F json | yaml] [-s <sort_key> [-t <top>]] [<keyspace>[.<table>]...]",
    ),
    (
        "toppartitions",
        "[-s <capacity>] [-k <top>] [-a <samplers>] [-i <interval> | -t | -l] \
         [<keyspace> <table | *>] [<duration in ms>]",
    ),
    ("tpstats", "[-F json | yaml]"),
    ("truncatehints", "[<address>]"),
    ("upgradesstables", "[-a | --include-all-sstables] [<keyspace> [<table>...]]"),
    ("verify", "-f [-e] [-c] [-r] [-t] [-q] [<keyspace> [<table>...]]"),
    ("version", "[-v | --verbose]"),
];
/// What to know of some verbs.
const NOTES: &[(&str, &str)] = &[
    (
        "repair",
        "Without a keyspace it repairs all that are replicated, one after the other, but
system_distributed. Without -full it repairs only what no incremental repair has repaired.

    -full         repair all data, repaired before or not
    -pr           repair only the ranges whose first replica is this node: run it on every node
    -st, -et      repair from this token (not part of it) to that one (part of it)
    -seq          repair one replica after the other; -dcpar: one of each data center at a time
    -local, -dc, -hosts
                  only with nodes of this data center, of these, or with these nodes
    -force        leave out nodes that are down
    -prv          only print what would be sent; -vd: only compare what was repaired before
    -j            tables to repair at a time
    -tr           trace the repair into system_traces
    -pl           only fetch, from one other node; needs -hosts twice, -st and -et
    -os           send no range twice to a node
    -skip-paxos, -paxos-only
                  without the repair of Paxos, or nothing but that
    -iuk          ignore keyspaces without other replicas

The repair runs in the node; nodetool only watches it. Ctrl-C ends the watching, not the repair,
and keyspaces that have not begun are not repaired. Its first line has the number of its command:
'nodetool repair --watch <command>' watches it again (only in Helenus). Times are UTC.
'nodetool repair_admin' lists the sessions of incremental repairs and ends one.
",
    ),
    (
        "repair_admin",
        "Sessions are those of incremental repairs. 'list' shows those that run, with -a all that
are known. 'cancel' ends one, from its coordinator or with -f. 'cleanup' moves data of sessions that
are over; the node does so by itself, with -f it ends compactions that are in the way.
'summarize-pending' and 'summarize-repaired' tell how much waits for the end of a repair, and when
data was last repaired. Nothing here ends a full repair.
",
    ),
];
const COLUMNS: usize = 96;

/// What `nodetool help` prints, or `nodetool help VERB`.
pub fn help(verb: Option<&str>) -> String {
    match verb {
        None => overview(),
        Some(verb) => match SERVED.iter().find(|(name, _)| *name == verb) {
            Some((name, what)) => {
                let uses = USES.iter().find(|(n, _)| n == name).map_or("", |(_, uses)| uses);
                let line = format!("nodetool [--data-dir <dir>] {name} {uses}");
                let note = NOTES.iter().find(|(n, _)| n == name);
                let note = note.map_or(String::new(), |(_, note)| format!("\n{note}"));
                format!("{name}: {what}\n\nusage: {}\n{note}", line.trim_end())
            }
            None => match NOT_SERVED.iter().find(|(name, _)| *name == verb) {
                Some((_, why)) => format!("{verb} is not supported: {why}\n"),
                None => format!("Unknown command {verb}\n"),
            },
        },
    }
}

fn overview() -> String {
    let mut text =
        "usage: nodetool [--data-dir <dir>] [(-pp | --print-port)] [--format json] <command> \
         [<args>]\n       nodetool [(-h | --host) <host>] [(-p | --port) <port>] [(-u | --username) \
         <user>]\n           [(-pw | --password) <password> | (-pwf | --password-file) <file>]\n           \
         [--ssl [--truststore <file>] [--keystore <file>] [--ssl-any-host]] <command> [<args>]\n\n\
         With '--format json', a command prints its result as JSON.\n\nThe commands are:\n"
            .to_owned();
    for (name, what) in SERVED {
        let _ = writeln!(text, "    {name:<27}{what}");
    }
    text.push_str("\nNot supported:\n");
    let mut line = String::new();
    for (name, _) in NOT_SERVED {
        if line.len() + name.len() + 5 > COLUMNS {
            let _ = writeln!(text, "   {line}");
            line.clear();
        }
        let _ = write!(line, " {name}");
    }
    let _ = writeln!(text, "   {line}");
    text.push_str("\nSee 'nodetool help <command>' for more information on a specific command.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_all_verbs() {
        let text = help(None);
        for (name, _) in SERVED.iter().chain(NOT_SERVED) {
            assert!(text.split_whitespace().any(|word| word == *name), "{name}");
        }
        assert!(text.lines().all(|line| line.len() <= COLUMNS));
        assert!(text.contains("--format json"));
    }

    #[test]
    fn explains_one_verb() {
        assert!(help(Some("flush")).ends_with("flush [<keyspace> [<table>...]]\n"));
        assert!(help(Some("drain")).ends_with("nodetool [--data-dir <dir>] drain\n"));
        assert_eq!(help(Some("bogus")), "Unknown command bogus\n");
        let repair = help(Some("repair"));
        assert!(repair.contains("Ctrl-C ends the watching, not the repair"), "{repair}");
        assert!(NOTES.iter().all(|(name, _)| USES.iter().any(|(used, _)| used == name)));
        assert!(USES.iter().all(|(name, _)| SERVED.iter().any(|(served, _)| served == name)));
    }
}
