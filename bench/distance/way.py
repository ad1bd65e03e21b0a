"""A long way between two network interfaces that it makes: way.py NAME NAME.

What comes out of one goes into the other half of so many milliseconds later as the last line of its
input says; none until there is one. It says `ready` once both are there, and ends with its input.
"""

import collections
import fcntl
import os
import select
import struct
import sys
import time

TUN = "/dev/net/tun"
TUNSETIFF = 0x400454CA
# frames, with nothing before them
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES_MAX = 65536
# so many are taken from one interface before the other is looked at
FRAMES_MAX = 64


def interface(name):
    end = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return end


def take(end, queue, delay):
    for _ in range(FRAMES_MAX):
        try:
            frame = os.read(end, FRAME_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:  # it is not up yet
            return
        queue.append((time.monotonic() + delay, frame))


def give(end, queue):
    while queue and queue[0][0] <= time.monotonic():
        try:
            os.write(end, queue.popleft()[1])
        except OSError:  # a network that is full loses frames
            pass


def main():
    try:  # before the nodes: while they compute the way would else be longer
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass
    one, other = (interface(name) for name in sys.argv[1:3])
    # what came out of each, with when it goes into the other
    queues = {one: collections.deque(), other: collections.deque()}
    delay, words = 0.0, b""
    print("ready", flush=True)
    while True:
        due = min((queue[0][0] for queue in queues.values() if queue), default=None)
        rest = None if due is None else max(0.0, due - time.monotonic())
        readable, _, _ = select.select([0, one, other], [], [], rest)
        for end in readable:
            if end:
                take(end, queues[end], delay)
                continue
            said = os.read(0, 4096)
            if not said:
                return
            *lines, words = (words + said).split(b"\n")
            if lines:
                delay = float(lines[-1]) / 2e3
        give(other, queues[one])
        give(one, queues[other])


main()
