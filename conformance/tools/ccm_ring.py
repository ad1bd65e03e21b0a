"""ccm on the tarball: a ring of three is made, written to and read at QUORUM while a node is
stopped and another one killed, and removed.

ccm_ring.py TARBALL FOLDER PREFIX   (PREFIX: the beginning of three addresses, as 127.0.5.)"""

import os
import sys

from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from common import clean, fail, ok, said, session, unpack, until

ROWS = 300


def main():
    tarball, folder, prefix = sys.argv[1:]
    home = unpack(tarball, folder)
    program = os.path.join(os.path.dirname(sys.executable), "ccm")

    def ccm(*words):
        # it takes the option behind the verb, and a node's verb is two words
        at = 2 if words[0].startswith("node") else 1
        options = ["--config-dir", folder]
        return said(program, *words[:at], *options, *words[at:], env=clean())

    ccm("create", "ring", "--install-dir", home, "-n", "3", "-i", prefix)
    ok("create ring --install-dir")
    try:
        use(ccm, prefix)
        ccm("checklogerror")
        ok("checklogerror: no log has an error")
    finally:
        ccm("stop")
    if "UP" in ccm("status"):
        fail("a node is up after ccm stop")
    ok("stop")
    ccm("remove")
    if os.path.exists(os.path.join(folder, "ring")):
        fail("ccm remove left the ring")
    ok("remove")


def status(ccm):
    """The nodes as `ccm status` has them."""
    lines = (line.split(": ") for line in ccm("status").splitlines())
    return {words[0]: words[1] for words in lines if words[0].startswith("node")}


def states(ccm, prefix):
    """The nodes as node1's `nodetool status` has them."""
    lines = (line.split() for line in ccm("node1", "nodetool", "status").splitlines())
    found = {words[1]: words[0] for words in lines if len(words) > 1 and words[1].startswith(prefix)}
    return [found.get(f"{prefix}{number}") for number in (1, 2, 3)]


def use(ccm, prefix):
    ccm("start", "--root", "--wait-for-binary-proto")
    up = {f"node{number}": "UP" for number in (1, 2, 3)}
    if status(ccm) != up:
        fail(f"ccm status: {status(ccm)}")
    ok("start: status says UP of three")
    if states(ccm, prefix) != ["UN"] * 3:
        fail(ccm("node1", "nodetool", "status"))
    ok("node1 nodetool status: UN of three")
    cql, end = session(f"{prefix}1")
    try:
        rows(ccm, cql, prefix)
    finally:
        end()


def rows(ccm, cql, prefix):
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}"
    cql.execute(f"CREATE KEYSPACE ks WITH replication = {replication}")
    cql.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
    insert = cql.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
    select = cql.prepare("SELECT v FROM ks.t WHERE k = ?")

    def write(turn):
        for k in range(turn * ROWS, (turn + 1) * ROWS):
            cql.execute(insert, (k, f"v{k}"))

    def check(turns, level):
        for k in range(turns * ROWS):
            select.consistency_level = level
            row = cql.execute(select, (k,)).one()
            if row is None or row.v != f"v{k}":
                fail(f"row {k} at {level}: {row}")

    def quorum(turn, what):
        write(turn)
        check(turn + 1, ConsistencyLevel.QUORUM)
        ok(f"QUORUM {what}: {ROWS} rows written, {(turn + 1) * ROWS} read")

    quorum(0, "with all nodes")
    for turn, node, how in ((1, 2, []), (2, 3, ["--not-gently"])):
        ccm(f"node{node}", "stop", *how)
        if status(ccm)[f"node{node}"] != "DOWN":
            fail(f"ccm status: {status(ccm)}")
        until(f"node{node} is DN", lambda: states(ccm, prefix)[node - 1] == "DN")
        ok(f"node{node} stop {' '.join(how)}".strip() + ": status says DOWN, nodetool status DN")
        quorum(turn, f"without node{node}")
        ccm(f"node{node}", "start", "--root", "--wait-for-binary-proto", "--wait-other-notice")
        until(f"node{node} is UN", lambda: states(ccm, prefix)[node - 1] == "UN")
        check(turn + 1, ConsistencyLevel.ALL)
        ok(f"node{node} start: UN again; {(turn + 1) * ROWS} rows read at ALL")
    count = cql.execute(SimpleStatement("SELECT count(*) FROM ks.t")).one()[0]
    if count != 3 * ROWS:
        fail(f"count(*) is {count}")


main()
