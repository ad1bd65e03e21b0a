"""Programs in a root of their own: a folder with Debian, /proc and /dev, and a network with two
addresses that nobody else has. The script that uses it runs itself again in new namespaces."""

import os
import subprocess
import sys

from common import PATH_OF_SYSTEM, fail

FIRST, SECOND = "10.77.0.1", "10.77.0.2"
UNSHARED = "HELENUS_UNSHARED"


def unshared():
    """Goes on in namespaces of its own for mounts and the network; root only."""
    if os.environ.get(UNSHARED):
        network()
        return
    if os.getuid() != 0:
        fail("only root makes namespaces and roots")
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", sys.executable]
    os.execvpe(words[0], [*words, *sys.argv], {**os.environ, UNSHARED: "1"})


def network():
    for words in (
        "link set lo up",
        "link add eth0 type veth peer name eth1",
        f"addr add {FIRST}/24 dev eth0",
        f"addr add {SECOND}/24 dev eth0",
        "link set eth0 up",
        "link set eth1 up",
    ):
        subprocess.run(["ip", *words.split()], check=True)


class Root:
    """A root below a folder."""

    def __init__(self, folder):
        self.folder = folder
        for kind, place in (("-t proc proc", "proc"), ("--rbind /dev", "dev")):
            os.makedirs(os.path.join(folder, place), exist_ok=True)
            subprocess.run(["mount", *kind.split(), os.path.join(folder, place)], check=True)

    def command(self, *words, **variables):
        env = [f"{name}={value}" for name, value in variables.items()]
        base = ["chroot", self.folder, "env", "-i", f"PATH={PATH_OF_SYSTEM}", "LANG=C.UTF-8"]
        return [*base, *env, *(str(word) for word in words)]

    def said(self, *words, code=0, **variables):
        done = subprocess.run(
            self.command(*words, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if code is not None and done.returncode != code:
            fail(f"{words} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def start(self, log, *words, **variables):
        with open(log, "wb") as file:
            return subprocess.Popen(
                self.command(*words, **variables), stdout=file, stderr=subprocess.STDOUT
            )
