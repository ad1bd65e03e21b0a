"""What the scripts of this folder have in common: commands that have to succeed, rows that have to
be there, and a node that runs from the tarball. A script prints `ok WHAT` of each step."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import WhiteListRoundRobinPolicy

# Seconds that a node may take until it serves, or is gone.
PATIENCE = 120
PATH_OF_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def ok(what):
    print(f"ok {what}", flush=True)


def fail(why):
    sys.exit(f"failed: {why}")


def said(*command, code=0, env=None, patience=2 * PATIENCE):
    """What a command says, with its errors; it has to end with that code."""
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        timeout=patience,
    )
    if done.returncode != code:
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def until(what, holds):
    """Waits for a condition."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            fail(f"waited {PATIENCE} s in vain: {what}")
        time.sleep(0.1)


def session(ip):
    """A session with one node alone, and what ends it."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([ip]),
        consistency_level=ConsistencyLevel.QUORUM,
        request_timeout=30,
    )
    cluster = Cluster([ip], execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    return cluster.connect(), cluster.shutdown


def unpack(tarball, folder):
    """The tarball below an empty folder; its top."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tarfile.open(tarball) as tar:
        tar.extractall(folder, filter="tar")
    (top,) = os.listdir(folder)
    return os.path.join(folder, top)


class Home:
    """A node that runs from an unpacked tarball, through its own scripts."""

    def __init__(self, home, ip, settings=()):
        self.home, self.ip = home, ip
        self.yaml = os.path.join(home, "conf/cassandra.yaml")
        self.pid = os.path.join(home, "pid")
        with open(self.yaml, encoding="utf-8") as file:
            text = file.read()
        for of in ("listen_address", "rpc_address"):
            text = text.replace(f"{of}: localhost", f"{of}: {ip}")
        text = text.replace("127.0.0.1:7000", f"{ip}:7000")
        text += "".join(f"{line}\n" for line in settings)
        with open(self.yaml, "w", encoding="utf-8") as file:
            file.write(text)

    def start(self):
        said(os.path.join(self.home, "bin/cassandra"), "-R", "-p", self.pid, env=clean())
        self.wait()

    def wait(self):
        nodetool = [os.path.join(self.home, "bin/nodetool"), "statusbinary"]

        def serves():
            done = subprocess.run(nodetool, capture_output=True, text=True, env=clean())
            return done.stdout.strip() == "running"

        until(f"{self.ip} serves", serves)

    def nodetool(self, *words):
        return said(os.path.join(self.home, "bin/nodetool"), *words, env=clean())

    def stop(self):
        """Stops it, if it runs."""
        try:
            with open(self.pid, encoding="utf-8") as file:
                pid = int(file.read())
            os.kill(pid, signal.SIGTERM)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return
        until(f"{self.ip} is gone", lambda: not os.path.exists(f"/proc/{pid}"))


def clean():
    """The environment without what steers the scripts of Cassandra."""
    of_scripts = ("CASSANDRA_HOME", "CASSANDRA_CONF", "CASSANDRA_INCLUDE", "JVM_OPTS")
    return {name: value for name, value in os.environ.items() if name not in of_scripts}
