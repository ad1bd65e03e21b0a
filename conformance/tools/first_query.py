"""How long it takes from a package to the first answer of a query, with no compiler: the wheel in a
fresh environment of Python, and the tarball.

first_query.py WHEEL TARBALL FOLDER IP   (prints both times; who runs it judges them)"""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

from common import Home, clean, fail, ok, said, session, until


def main():
    wheel, tarball, folder, ip = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    of_wheel(wheel, folder, ip)
    of_tarball(tarball, folder, ip)


def first_query(ip):
    """Asks until there is an answer."""

    def answered():
        try:
            cql, end = session(ip)
        except Exception:  # nobody listens yet
            return False
        release = cql.execute("SELECT release_version FROM system.local").one().release_version
        end()
        return release == "5.0.9"

    until("a query is answered", answered)


def of_wheel(wheel, folder, ip):
    venv, data = os.path.join(folder, "venv"), os.path.join(folder, "data")
    started = time.monotonic()
    said("python3", "-m", "venv", venv)
    said(f"{venv}/bin/pip", "install", "--no-index", "--quiet", wheel)
    version = said(f"{venv}/bin/helenus", "--version")
    if not version.startswith("helenus "):
        fail(version)
    command = [f"{venv}/bin/helenus", "--listen", ip, "--data-dir", data]
    command += ["--set", f"metrics_address={ip}"]
    with open(os.path.join(folder, "log"), "wb") as log:
        node = subprocess.Popen(command, stdout=log, stderr=log, env=clean())
    try:
        first_query(ip)
        took = time.monotonic() - started
        # the program has its place below the environment, and its own way to the node
        said(f"{venv}/bin/nodetool", "--data-dir", data, "-Dx=y", "status")
    finally:
        node.send_signal(signal.SIGTERM)
        if node.wait() != 0:
            fail(f"helenus ended with {node.returncode}")
    ok(f"wheel: {took:.1f} s from an empty folder to the first query (venv, pip install, start)")


def of_tarball(tarball, folder, ip):
    started = time.monotonic()
    with tarfile.open(tarball) as tar:
        tar.extractall(folder, filter="tar")
    (top,) = (name for name in os.listdir(folder) if name.startswith("helenus-"))
    node = Home(os.path.join(folder, top), ip)
    node.start()
    try:
        first_query(ip)
        took = time.monotonic() - started
    finally:
        node.stop()
    ok(f"tarball: {took:.1f} s from the file to the first query (unpack, bin/cassandra)")


main()
