"""Medusa on a node of the tarball: a backup to a local folder, the node's data lost, the node
restored, and every row there again. Twice: whole (`full`), and after more writes `differential`.

medusa_restore.py TARBALL FOLDER IP"""

import os
import shlex
import shutil
import sys

from common import Home, clean, fail, ok, said, session, unpack

ROWS = 2000
# Seconds: Medusa backs up with the CPU and the disk that nobody else wants.
IDLE_PATIENCE = 900
# Of the second backup.
MORE = 500


def main():
    tarball, folder, ip = sys.argv[1:]
    home = unpack(tarball, os.path.join(folder, "home"))
    data = os.path.join(folder, "data")
    shutil.rmtree(data, ignore_errors=True)
    node = Home(home, ip, settings_of(data))
    medusa = Medusa(node, folder, ip)
    node.start()
    try:
        backed_up(node, medusa, data)
    finally:
        node.stop()


def settings_of(data):
    # Medusa reads them itself: one data directory, and its neighbours by name
    folders = [f"data_file_directories: ['{data}/data']"]
    names = ("commitlog", "saved_caches", "hints")
    return folders + [f"{name}_directory: {data}/{name}" for name in names]


class Medusa:
    """The program, configured for one node and a local folder."""

    def __init__(self, node, folder, ip):
        self.ini = os.path.join(folder, "medusa.ini")
        self.folder = folder
        backups = os.path.join(folder, "backups")
        shutil.rmtree(backups, ignore_errors=True)
        os.makedirs(os.path.join(backups, "bucket"))
        # what `service cassandra start` and `stop` are on a machine with the package
        start = [os.path.join(node.home, "bin/cassandra"), "-R", "-p", node.pid]
        stop = ["sh", "-c", f"pid=$(cat {node.pid}); kill $pid; while test -e /proc/$pid; do sleep 0.1; done"]
        sections = {
            "cassandra": {
                "start_cmd": shlex.join(start),
                "stop_cmd": shlex.join(stop),
                "config_file": node.yaml,
                "nodetool_executable": os.path.join(node.home, "bin/nodetool"),
                "resolve_ip_addresses": "False",
                "use_sudo": "False",
            },
            "storage": {
                "storage_provider": "local",
                "base_path": backups,
                "bucket_name": "bucket",
                "fqdn": ip,
                "use_sudo_for_restore": "False",
                "max_backup_count": "0",
            },
            "checks": {"health_check": "cql", "query": "SELECT v FROM ks.t WHERE k = 1", "expected_rows": "1"},
        }
        with open(self.ini, "w", encoding="utf-8") as file:
            for section, keys in sections.items():
                file.write(f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items()))

    def __call__(self, *words):
        program = os.path.join(os.path.dirname(sys.executable), "medusa")
        words = [program, "--config-file", self.ini, *words]
        return said(*words, env=clean(), patience=IDLE_PATIENCE)


def write(ip, numbers):
    cql, end = session(ip)
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    cql.execute(f"CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {replication}")
    cql.execute("CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY, v text, s set<int>)")
    cql.execute("CREATE TABLE IF NOT EXISTS ks.hits (k int PRIMARY KEY, n counter)")
    cql.execute("CREATE INDEX IF NOT EXISTS by_v ON ks.t (v)")
    insert = cql.prepare("INSERT INTO ks.t (k, v, s) VALUES (?, ?, ?)")
    count = cql.prepare("UPDATE ks.hits SET n = n + ? WHERE k = ?")
    for k in numbers:
        cql.execute(insert, (k, f"v{k}", {k, k + 1}))
        cql.execute(count, (k, k))
    end()


def check(ip, rows):
    """All rows are there, and no other."""
    cql, end = session(ip)
    found = {row.k: (row.v, set(row.s)) for row in cql.execute("SELECT k, v, s FROM ks.t")}
    if found != {k: (f"v{k}", {k, k + 1}) for k in range(rows)}:
        fail(f"{len(found)} rows, not {rows}")
    hits = {row.k: row.n for row in cql.execute("SELECT k, n FROM ks.hits")}
    if hits != {k: k for k in range(rows)}:
        other = [(k, n) for k, n in hits.items() if k != n]
        fail(f"{len(hits)} counters, not {rows}: {other[:5]}")
    one = cql.execute("SELECT k FROM ks.t WHERE v = 'v7'").one()
    if one is None or one.k != 7:
        fail(f"the index finds {one}")
    end()


def backed_up(node, medusa, data):
    write(node.ip, range(ROWS))
    medusa("backup-node", "--backup-name", "whole", "--mode", "full")
    ok(f"backup-node --mode full: {2 * ROWS} rows in {files(medusa)} files")
    medusa("backup-node", "--backup-name", "first", "--mode", "differential")
    write(node.ip, range(ROWS, ROWS + MORE))
    before = files(medusa)
    medusa("backup-node", "--backup-name", "second", "--mode", "differential")
    ok(f"backup-node --mode differential, twice: {files(medusa) - before} files more for {2 * MORE} rows more")
    listed = medusa("list-backups")
    if not all(name in listed for name in ("whole", "first", "second")):
        fail(listed)
    medusa("verify", "--backup-name", "second")
    ok("list-backups, verify")
    if "medusa-" in node.nodetool("listsnapshots"):
        fail(f"snapshots are left: {node.nodetool('listsnapshots')}")

    tokens = node.nodetool("info", "-T")
    # tables gone, and the schema with them: the node stays what it is
    for keyspace in ("ks", "system_schema"):
        lost(node, data, keyspace)
    restore(node, medusa, "whole", ["--in-place"])
    check(node.ip, ROWS)
    ok(f"restore-node --in-place of `whole`, files of tables lost: {2 * ROWS} rows, an index")

    node.stop()
    shutil.rmtree(data)
    node.start()
    restore(node, medusa, "second", ["--remote"])
    check(node.ip, ROWS + MORE)
    if strip(node.nodetool("info", "-T")) != strip(tokens):
        fail("other tokens than before")
    ok(f"restore-node of `second`, all directories lost: {2 * (ROWS + MORE)} rows, tokens as before")


def strip(info):
    return sorted(line for line in info.splitlines() if line.startswith("Token"))


def lost(node, data, keyspace):
    node.stop()
    shutil.rmtree(os.path.join(data, "data", keyspace))
    node.start()


def restore(node, medusa, name, more):
    # it stops the node and starts it by the commands of its configuration
    words = ["restore-node", "--backup-name", name, "--no-verify"]
    medusa("-v", *words, *more)
    node.wait()


def files(medusa):
    backups = os.path.join(medusa.folder, "backups")
    return sum(len(names) for _, _, names in os.walk(backups))


main()
