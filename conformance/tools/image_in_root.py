"""The image's entry point in a root of the image's layers, with each variable of Cassandra's image:
the node starts, and says itself what the variable set.

image_in_root.py IMAGE.OCI.TAR FOLDER   (root)"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile

from chroot import FIRST, SECOND, Root, unshared
from common import fail, ok, until

SNITCH = {"CASSANDRA_ENDPOINT_SNITCH": "GossipingPropertyFileSnitch"}
# A variable, its value, others beside it, a column of system.local, and what is there then.
OF_LOCAL = [
    ("CASSANDRA_LISTEN_ADDRESS", SECOND, {}, "listen_address", SECOND),
    ("CASSANDRA_BROADCAST_ADDRESS", SECOND, {}, "broadcast_address", SECOND),
    ("CASSANDRA_BROADCAST_RPC_ADDRESS", SECOND, {}, "rpc_address", SECOND),
    ("CASSANDRA_START_RPC", "true", {}, "listen_address", FIRST),
    ("CASSANDRA_CLUSTER_NAME", "it's: mine", {}, "cluster_name", "it's: mine"),
    ("CASSANDRA_DC", "east", SNITCH, "data_center", "east"),
    ("CASSANDRA_RACK", "r7", SNITCH, "rack", "r7"),
]


def main():
    unshared()
    image, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tarfile.open(image) as tar:
        (described,) = json.load(tar.extractfile("manifest.json"))
        for layer in described["Layers"]:
            with tarfile.open(fileobj=tar.extractfile(layer)) as files:
                files.extractall(folder, filter="fully_trusted")
        config = json.load(tar.extractfile(described["Config"]))["config"]
    env = dict(line.split("=", 1) for line in config["Env"])
    container = Container(Root(folder), folder, env, config["Entrypoint"] + config["Cmd"])
    for name, value, more, column, wanted in OF_LOCAL:
        container.start({name: value, **more})
        found = container.column(column)
        container.stop()
        if found != wanted:
            fail(f"{name}={value}: {column} is {found}, not {wanted}")
        ok(f"{name}={value}: system.local has {column} {found}")
    others(container)


def others(container):
    container.start({"CASSANDRA_RPC_ADDRESS": SECOND})
    container.cqlsh("SELECT key FROM system.local", SECOND)
    if listens(FIRST) or not listens(SECOND):
        fail("CASSANDRA_RPC_ADDRESS: it listens elsewhere, too")
    container.stop()
    ok(f"CASSANDRA_RPC_ADDRESS={SECOND}: clients are served there alone")

    container.start({"CASSANDRA_SEEDS": f"{FIRST},{SECOND}"})
    seeds = container.root.said("nodetool", "getseeds", **container.env)
    container.stop()
    if SECOND not in seeds:
        fail(f"CASSANDRA_SEEDS: {seeds}")
    ok(f"CASSANDRA_SEEDS={FIRST},{SECOND}: nodetool getseeds has the other one")

    container.start({"CASSANDRA_NUM_TOKENS": "8"})
    tokens = container.root.said("nodetool", "info", "-T", **container.env).count("\nToken ")
    container.stop()
    if tokens != 8:
        fail(f"CASSANDRA_NUM_TOKENS=8: {tokens} tokens")
    ok("CASSANDRA_NUM_TOKENS=8: nodetool info -T has 8 tokens")

    container.start(SNITCH)
    described = container.root.said("nodetool", "describecluster", **container.env)
    container.stop()
    if SNITCH["CASSANDRA_ENDPOINT_SNITCH"] not in described:
        fail(f"CASSANDRA_ENDPOINT_SNITCH: {described}")
    ok("CASSANDRA_ENDPOINT_SNITCH=GossipingPropertyFileSnitch: nodetool describecluster has it")


def listens(ip):
    try:
        socket.create_connection((ip, 9042), timeout=5).close()
        return True
    except ConnectionRefusedError:
        return False


class Container:
    """A node as the image starts it, with its files as they were each time."""

    def __init__(self, root, folder, env, command):
        self.root, self.folder, self.env, self.command = root, folder, env, command
        self.kept = folder + ".conf"
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(os.path.join(folder, "etc/cassandra"), self.kept)

    def start(self, variables):
        conf = os.path.join(self.folder, "etc/cassandra")
        for name in os.listdir(self.kept):
            shutil.copyfile(os.path.join(self.kept, name), os.path.join(conf, name))
        data = os.path.join(self.folder, "var/lib/cassandra")
        for name in os.listdir(data):
            shutil.rmtree(os.path.join(data, name), ignore_errors=True)
        log = self.folder + ".log"
        self.process = self.root.start(log, *self.command, **self.env, **variables)
        health = self.root.command("/usr/local/bin/helenus-health", **self.env)

        def is_healthy():
            if self.process.poll() is not None:
                fail(f"{variables}: {open(log, encoding='utf-8').read()}")
            return subprocess.run(health, capture_output=True).returncode == 0

        until(f"healthy with {variables}", is_healthy)

    def cqlsh(self, statement, ip):
        return self.root.said("cqlsh", ip, "-e", statement, **self.env)

    def column(self, name):
        said = self.cqlsh(f"SELECT JSON {name} FROM system.local", FIRST)
        line = next(line for line in said.splitlines() if line.strip().startswith("{"))
        return json.loads(line)[name]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            fail(f"it ended with {self.process.returncode}")


main()
