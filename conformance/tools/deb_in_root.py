"""The deb in a Debian of its own: installed, its node started and queried, upgraded with the node
running, removed and purged. What runs there is dpkg with the package's scripts, and no systemd.

deb_in_root.py DEB DEBIAN.TAR FOLDER   (root; DEBIAN.TAR: a root as mmdebstrap makes it)"""

import os
import shutil
import signal
import sys
import tarfile

from chroot import FIRST, Root, unshared
from common import fail, ok, said, session, until

YAML = "etc/cassandra/cassandra.yaml"
DATA = "var/lib/cassandra"


def main():
    unshared()
    deb, debian, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tarfile.open(debian) as tar:
        tar.extractall(folder, filter="fully_trusted")
    root = Root(folder)
    newer = upgraded(deb, folder)
    shutil.copy(deb, os.path.join(folder, "first.deb"))

    def path(name):
        return os.path.join(folder, name)

    root.said("dpkg", "--install", "/first.deb")
    if "cassandra" not in root.said("stat", "-c", "%U", f"/{DATA}"):
        fail("the data is not the user cassandra's")
    files = len(root.said("dpkg", "--listfiles", "helenus").splitlines())
    ok(f"dpkg --install: the user cassandra, its folders, {files} files")

    text = open(path(YAML), encoding="utf-8").read()
    for of in ("listen_address", "rpc_address"):
        text = text.replace(f"{of}: localhost", f"{of}: {FIRST}")
    text = text.replace("127.0.0.1:7000", f"{FIRST}:7000").replace("Test Cluster", "Mine")
    open(path(YAML), "w", encoding="utf-8").write(text)
    own = path("etc/cassandra/helenus.yaml")
    open(own, "a", encoding="utf-8").write("\nopen_without_authentication: true\n")

    node = Service(root, folder)
    node.start()
    write()
    if f"UN  {FIRST}" not in root.said("nodetool", "status"):
        fail(root.said("nodetool", "status"))
    ok("cassandra -f as the user cassandra (what the unit starts): nodetool status UN, rows written")

    shutil.copy(newer, path("second.deb"))
    root.said("dpkg", "--force-confold", "--install", "/second.deb")
    version = root.said("dpkg-query", "-W", "-f", "${Version}", "helenus")
    if version != "99.0" or node.process.poll() is not None or "Mine" not in open(path(YAML)).read():
        fail(f"after the upgrade: version {version}, node {node.process.poll()}")
    check()
    ok("dpkg --install of a newer version: the node runs on, cassandra.yaml as the operator left it")
    node.stop()
    node.start()
    check()
    ok("restarted: rows there")
    node.stop()

    root.said("dpkg", "--remove", "helenus")
    if os.path.lexists(path("usr/sbin/cassandra")) or not os.path.exists(path(YAML)):
        fail("dpkg --remove left programs, or took the configuration")
    root.said("dpkg", "--purge", "helenus")
    if os.path.exists(path(YAML)) or os.path.exists(path("var/log/cassandra")):
        fail("dpkg --purge left configuration or logs")
    if not os.listdir(path(DATA)):
        fail("dpkg --purge took the data")
    ok("dpkg --remove keeps configuration, --purge removes it with the logs, data stays")


def upgraded(deb, folder):
    """The same package with a higher version."""
    tree, newer = os.path.join(folder, "tree"), os.path.join(folder, "newer.deb")
    said("dpkg-deb", "--raw-extract", deb, tree)
    control = os.path.join(tree, "DEBIAN/control")
    lines = open(control, encoding="utf-8").read().splitlines()
    lines = ["Version: 99.0" if line.startswith("Version:") else line for line in lines]
    open(control, "w", encoding="utf-8").write("\n".join(lines) + "\n")
    said("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, newer)
    shutil.rmtree(tree)
    return newer


class Service:
    """What the unit does: as the user cassandra, in the foreground."""

    def __init__(self, root, folder):
        self.root, self.log = root, os.path.join(folder, "node.log")

    def start(self):
        as_user = ["setpriv", "--reuid", "cassandra", "--regid", "cassandra", "--init-groups"]
        self.process = self.root.start(self.log, *as_user, "/usr/sbin/cassandra", "-f")
        until("it serves", lambda: self.serves() or self.process.poll() is not None)
        if self.process.poll() is not None:
            fail(open(self.log, encoding="utf-8").read())

    def serves(self):
        return self.root.said("nodetool", "statusbinary", code=None).strip() == "running"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            fail(f"it ended with {self.process.returncode}")


def write():
    cql, end = session(FIRST)
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    cql.execute(f"CREATE KEYSPACE ks WITH replication = {replication}")
    cql.execute("CREATE TABLE ks.t (k int PRIMARY KEY)")
    for k in range(100):
        cql.execute("INSERT INTO ks.t (k) VALUES (%s)", (k,))
    end()


def check():
    cql, end = session(FIRST)
    count = cql.execute("SELECT count(*) FROM ks.t").one()[0]
    end()
    if count != 100:
        fail(f"{count} rows of 100")


main()
