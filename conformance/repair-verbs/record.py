#!/usr/bin/env python3
"""Record what a real nodetool prints for `repair` and `repair_admin`: first with one node, then in a ring of two.

    record.py WORK [CASE...]

WORK is an empty folder for the two nodes (127.0.7.1, 127.0.7.2). Each case becomes a file `recorded/CASE.txt` beside this
script; with names of cases, only those are written, but all steps run. Needs the driver `cassandra` of Python
(`.cache/venv/bin/python` of the checkout has it). PEER_CACHE is where the jars are.

A real nodetool may lose the first event of a repair: it learns the number of its command only when the first events are
under way. Such a run is tried again where that changes nothing.

What differs from run to run is masked, at the same width where it stands in a table: times, UUIDs (numbered by their
first appearance in a case), durations, command numbers, stack traces.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PEER = HERE.parent / "peer" / "cassandra"
RECORDED = HERE / "recorded"
ONE, TWO = "127.0.7.1", "127.0.7.2"
TOKENS = {ONE: "-6000000000000000000,2000000000000000000", TWO: "-2000000000000000000,6000000000000000000"}
JMX = {ONE: "7471", TWO: "7472"}
HEAP = "768M"

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MASKS = [
    (re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]"), "[TIME]"),
    (re.compile(r"finished in .*"), "finished in DURATION"),
    (re.compile(r"(epair command|cmd:?) (#?)\d+"), r"\1 \2N"),
    (re.compile(r"\b\d+(?= \(s\))"), lambda found: "N" * len(found.group())),
    (re.compile(r"\b1[789]\d{11}\b"), "MILLIS_OF_NOW"),
]


def mask(text):
    """The text without what differs from run to run."""
    seen = {}

    def uuid(found):
        number = seen.setdefault(found.group(), len(seen) + 1)
        return f"00000000-0000-0000-0000-{number:012}"

    text = UUID.sub(uuid, text)
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    lines, in_trace = [], False
    for line in text.splitlines():
        if in_trace and (line.startswith("\t") or line.startswith("Caused by") or re.match(r"[\w.$]+(Exception|Error)\b", line)):
            continue
        in_trace = line == "-- StackTrace --"
        lines.append(line)
        if in_trace:
            lines.append("STACK TRACE")
    return "".join(line + "\n" for line in lines)


class Ring:
    """Two nodes, of which one may be down."""

    def __init__(self, work):
        self.work = pathlib.Path(work).resolve()

    def start(self, ip):
        env = dict(
            os.environ, FAST="1", SEEDS=ONE, JMX_PORT=JMX[ip], INITIAL_TOKEN=TOKENS[ip], NUM_TOKENS="2",
            EXTRA_YAML="hinted_handoff_enabled: false\nauto_bootstrap: false\nphi_convict_threshold: 16",
        )
        subprocess.run([PEER, "start", self.work / ip, ip, HEAP], check=True, env=env)

    def stop(self, ip):
        subprocess.run([PEER, "stop", self.work / ip], check=False)

    def nodetool(self, *words, at=ONE):
        env = dict(os.environ, LC_ALL="C.UTF-8")
        return subprocess.run(
            [PEER, "nodetool", self.work / at, *words], env=env, capture_output=True, text=True, timeout=300, check=False
        )

    def log(self, ip):
        return (self.work / ip / "log" / "system.log").read_text()

    def signal(self, ip, number):
        os.kill(int((self.work / ip / "pid").read_text()), number)

    def cql(self, ip, *statements, level=None):
        from cassandra import ConsistencyLevel
        from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
        from cassandra.policies import WhiteListRoundRobinPolicy

        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([ip]), consistency_level=level or ConsistencyLevel.ONE, request_timeout=60
        )
        cluster = Cluster([ip], execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        session = cluster.connect()
        while not cluster.control_connection.wait_for_schema_agreement(wait_time=60):
            pass
        for statement in statements:
            session.execute(statement)
        cluster.shutdown()

    def is_seen(self, ip, state):
        """Waits until node ONE sees the other as U or D."""
        for _ in range(120):
            lines = self.nodetool("status").stdout.splitlines()
            if any(line.startswith(state) and f" {ip} " in line for line in lines):
                return
            time.sleep(0.5)
        raise SystemExit(f"{ip} is not {state}")


class Recorder:
    """Runs cases and writes them down."""

    def __init__(self, ring, wanted):
        self.ring, self.wanted = ring, wanted
        self.names = set()

    def case(self, name, *words, at=ONE):
        assert name not in self.names, name
        self.names.add(name)
        for _ in range(5 if words[0] == "repair" and ("-full" in words or "-prv" in words) else 1):
            began = self.ring.log(at).count("Starting repair command")
            run = self.ring.nodetool(*words, at=at)
            if self.ring.log(at).count("Starting repair command") - began == run.stdout.count("Starting repair command"):
                break
        self.write(name, words, run)

    def write(self, name, words, run):
        if self.wanted and name not in self.wanted:
            return
        text = mask(f"$ nodetool {' '.join(words)}\n{run.stdout}")
        if run.stderr:
            text += "--- standard error\n" + mask(run.stderr)
        (RECORDED / f"{name}.txt").write_text(text + f"--- exit code {run.returncode}\n")
        print(f"{name}: {run.returncode}", flush=True)


def rows(table, first, last):
    return [f"INSERT INTO {table} (k, c, v) VALUES ({k}, {c}, 'v{k}.{c}')" for k in range(first, last) for c in range(3)]


def keyspace(name, replicas):
    return [
        f"CREATE KEYSPACE {name} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': {replicas}}}",
        *(f"CREATE TABLE {name}.{table} (k int, c int, v text, PRIMARY KEY (k, c)) WITH read_repair = 'NONE'" for table in ("same", "differing")),
    ]


def options(record):
    """What one node is enough for: options, names, keyspaces that need no repair."""
    case = record.case
    case("bad-job-threads-text", "repair", "-j", "x", "rf1")
    case("bad-job-threads-missing", "repair", "rf1", "-j")
    case("bad-option", "repair", "--bogus", "rf1")
    case("bad-option-sp", "repair", "-sp", "rf1")
    case("bad-start-token-missing", "repair", "rf1", "-st")
    case("job-threads-5", "repair", "-j", "5", "rf1")
    case("job-threads-0", "repair", "-j", "0", "-full", "rf2")
    case("unknown-keyspace", "repair", "nosuch")
    case("unknown-keyspace-pr-dc", "repair", "-pr", "-dc", "datacenter1", "nosuch")
    case("unknown-table", "repair", "rf2", "nosuch")
    case("pr-dc", "repair", "-pr", "-dc", "datacenter1", "rf1")
    case("pr-hosts", "repair", "-pr", "-hosts", ONE, "rf1")
    case("pr-local", "repair", "-pr", "-local", "rf1")
    case("dc-and-hosts", "repair", "-dc", "datacenter1", "-hosts", ONE, "rf2")
    case("tokens-equal", "repair", "-st", "5", "-et", "5", "rf2")
    case("tokens-text", "repair", "-st", "x", "-et", "5", "rf2")
    case("tokens-end-missing", "repair", "-st", "5", "rf2")
    case("pull-without-hosts", "repair", "-pl", "rf2")
    case("pull-without-tokens", "repair", "-pl", "-hosts", ONE, "-hosts", TWO, "rf2")
    case("local-strategy", "repair", "system")
    case("rf1", "repair", "rf1")
    case("rf1-full", "repair", "-full", "rf1")
    case("rf1-iuk", "repair", "-full", "-iuk", "rf1")
    case("rf2-alone", "repair", "-full", "rf2")
    case("rf2-alone-iuk", "repair", "-full", "-iuk", "rf2")
    case("empty-keyspace", "repair", "-full", "empty")
    case("everything-alone", "repair", "-full")
    case("admin-nothing-list", "repair_admin")
    case("admin-nothing-list-all", "repair_admin", "list", "-a")
    case("admin-nothing-pending", "repair_admin", "summarize-pending", "rf2")
    case("admin-nothing-repaired", "repair_admin", "summarize-repaired", "rf2")
    case("admin-nothing-cleanup", "repair_admin", "cleanup", "rf2")
    case("admin-bogus", "repair_admin", "bogus")
    case("admin-bogus-option", "repair_admin", "list", "--bogus")
    case("admin-list-arguments", "repair_admin", "list", "rf2")
    case("admin-option-before-subcommand", "repair_admin", "-a")
    case("admin-cancel-nothing", "repair_admin", "cancel")
    case("admin-cancel-text", "repair_admin", "cancel", "-s", "x")
    case("admin-cancel-unknown", "repair_admin", "cancel", "-s", "a7b5e5c0-0000-11f1-8000-000000000000")
    case("admin-pending-unknown-keyspace", "repair_admin", "summarize-pending", "nosuch")
    case("admin-pending-unknown-table", "repair_admin", "summarize-pending", "rf2", "nosuch")
    case("admin-repaired-everything", "repair_admin", "summarize-repaired")
    case("admin-list-tokens-half", "repair_admin", "list", "-st", "5")
    case("help-repair", "help", "repair")
    case("help-admin", "help", "repair_admin")
    case("help-admin-list", "help", "repair_admin", "list")


def full(record):
    """Full repairs in a ring of two whose tables `differing` differ."""
    case = record.case
    case("full-same", "repair", "-full", "rf2", "same")
    case("preview-full-differing", "repair", "-prv", "-full", "rf2", "differing")
    case("preview-differing", "repair", "-prv", "rf2", "differing")
    case("preview-full-same", "repair", "-prv", "-full", "rf2", "same")
    case("validate-unrepaired", "repair", "-vd", "rf2", "differing")
    case("range-foreign", "repair", "-full", "-st", "-9000000000000000000", "-et", "9000000000000000000", "rf2", "differing")
    case("range-half", "repair", "-full", "-st", "0", "-et", "1000000000000000000", "rf2", "differing")
    case("hosts-other-only", "repair", "-full", "-hosts", TWO, "rf2", "same")
    case("hosts-unknown", "repair", "-full", "-hosts", ONE, "-hosts", "127.0.7.9", "rf2", "same")
    case("hosts-no-name", "repair", "-full", "-hosts", ONE, "-hosts", "größe.invalid", "rf2", "same")
    case("hosts-alone", "repair", "-full", "-hosts", ONE, "rf2", "same")
    case("dc-unknown", "repair", "-full", "-dc", "größe", "rf2", "same")
    case("dc", "repair", "-full", "-dc", "datacenter1", "rf2", "same")
    case("local", "repair", "-full", "-local", "rf2", "same")
    case("pr-full", "repair", "-pr", "-full", "rf2", "same")
    case("pull", "repair", "-full", "-pl", "-hosts", ONE, "-hosts", TWO, "-st", "0", "-et", "1000000000000000000", "rf2", "same")
    case("full-differing", "repair", "-full", "rf2", "differing")
    case("full-differing-again", "repair", "-full", "-j", "2", "rf2", "differing", "same")
    case("sequential", "repair", "-full", "-seq", "rf2", "same")
    case("dc-parallel", "repair", "-full", "-dcpar", "-os", "rf2", "same")
    case("skip-paxos", "repair", "-full", "-skip-paxos", "rf2", "same")
    case("paxos-only", "repair", "-paxos-only", "rf2", "same")
    case("traced", "repair", "-full", "-tr", "-st", "0", "-et", "1000000000000000000", "rf2", "same")
    case("everything-full", "repair", "-full")


def incremental(record):
    """Incremental repairs and their sessions."""
    case = record.case
    case("admin-before-list-all", "repair_admin", "list", "--all")
    case("admin-before-repaired", "repair_admin", "summarize-repaired", "-v", "rf2")
    case("incremental", "repair", "rf2", "same")
    case("incremental-range", "repair", "-st", "0", "-et", "1000000000000000000", "rf2", "differing")
    case("validate-repaired", "repair", "-vd", "rf2", "same")
    case("admin-after-list", "repair_admin", "list")
    case("admin-after-list-all", "repair_admin", "list", "-a")
    case("admin-after-list-tokens", "repair_admin", "list", "-a", "-st", "3000000000000000000", "-et", "4000000000000000000")
    case("admin-after-pending", "repair_admin", "summarize-pending", "rf2")
    case("admin-after-pending-verbose", "repair_admin", "summarize-pending", "--verbose", "rf2", "same")
    case("admin-after-repaired", "repair_admin", "summarize-repaired", "rf2")
    case("admin-after-repaired-verbose", "repair_admin", "summarize-repaired", "-v", "rf2", "same", "differing")
    case("admin-after-repaired-tokens", "repair_admin", "summarize-repaired", "-v", "-st", "0", "-et", "9", "rf2", "same")
    case("admin-after-cleanup", "repair_admin", "cleanup", "rf2")
    case("admin-after-cleanup-force", "repair_admin", "cleanup", "--force", "rf2", "same")
    case("admin-after-pending-everything", "repair_admin", "summarize-pending", "-v")
    listed = record.ring.nodetool("repair_admin", "list", "-a").stdout
    session = UUID.search(listed).group()
    case("admin-cancel-finalized", "repair_admin", "cancel", "-s", session)
    case("admin-cancel-elsewhere", "repair_admin", "cancel", "-s", session, at=TWO)


def down(record):
    """The other replica is down."""
    case = record.case
    case("down-full", "repair", "-full", "rf2", "same")
    case("down-incremental", "repair", "rf2", "same")
    case("down-full-force", "repair", "-full", "-force", "rf2", "same")
    case("down-preview", "repair", "-prv", "rf2", "same")


def interrupted(record):
    """The other replica stops while it prepares an incremental repair: data waits, then the session is ended."""
    ring, case = record.ring, record.case
    begun = "Beginning prepare phase of incremental repair session"
    ring.nodetool("disableautocompaction")
    ring.cql(ONE, *rows("rf2.same", 50, 60), level=None)
    before = ring.log(ONE).count(begun)
    runs = []
    repair = threading.Thread(target=lambda: runs.append(ring.nodetool("repair", "rf2", "same")))
    repair.start()
    while ring.log(ONE).count(begun) == before and repair.is_alive():
        time.sleep(0.002)
    ring.signal(TWO, signal.SIGSTOP)
    try:
        time.sleep(2)
        session = UUID.search(ring.log(ONE)[ring.log(ONE).rindex(begun):]).group()
        case("admin-running-list", "repair_admin", "list")
        case("admin-running-pending", "repair_admin", "summarize-pending", "-v", "rf2", "same")
        case("admin-running-cleanup", "repair_admin", "cleanup", "rf2", "same")
        case("admin-running-cancel", "repair_admin", "cancel", "-s", session)
        ring.signal(TWO, signal.SIGCONT)    # a repair does not end while a participant stands still
        repair.join()
        record.names.add("incremental-cancelled")
        record.write("incremental-cancelled", ("repair", "rf2", "same"), runs[0])
        case("admin-cancelled-list", "repair_admin", "list")
        case("admin-cancelled-list-all", "repair_admin", "list", "-a")
        case("admin-cancelled-pending", "repair_admin", "summarize-pending", "-v", "rf2", "same")
        case("admin-cancelled-cleanup", "repair_admin", "cleanup", "rf2", "same")
        case("admin-cancelled-pending-after-cleanup", "repair_admin", "summarize-pending", "-v", "rf2", "same")
    finally:
        ring.signal(TWO, signal.SIGCONT)


def main():
    work, *wanted = sys.argv[1:]
    RECORDED.mkdir(exist_ok=True)
    ring = Ring(work)
    record = Recorder(ring, set(wanted))
    try:
        ring.start(ONE)
        ring.cql(ONE, *keyspace("rf1", 1), *keyspace("rf2", 2),
                 "CREATE KEYSPACE empty WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 2}")
        options(record)
        ring.start(TWO)
        ring.is_seen(TWO, "UN")
        from cassandra import ConsistencyLevel
        ring.cql(ONE, *rows("rf2.same", 0, 30), *rows("rf2.differing", 0, 10), level=ConsistencyLevel.ALL)
        ring.stop(TWO)
        ring.is_seen(TWO, "DN")
        down(record)
        ring.cql(ONE, *rows("rf2.differing", 10, 30))
        ring.nodetool("flush")
        ring.start(TWO)
        ring.is_seen(TWO, "UN")
        full(record)
        incremental(record)
        interrupted(record)
    finally:
        ring.stop(ONE)
        ring.stop(TWO)


if __name__ == "__main__":
    main()
