"""When the machine stood still: stops.py MILLISECONDS.

A thread on each processor, before all others there (SCHED_FIFO), sleeps for a millisecond at a time. Where it wakes so many
milliseconds late nothing of ours could run either. Each such time is told (seconds since 1970, processor, milliseconds) until the
input ends; the last line is how many there were and the longest.
"""

import os
import sys
import threading
import time

SLEEP = 0.001
PRIORITY = 50


def watch(processor, least, stops, refused, begun):
    try:
        os.sched_setaffinity(0, {processor})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError as error:
        refused.append(error)
    begun.wait()
    if refused:
        return
    while True:
        asleep = time.monotonic()
        time.sleep(SLEEP)
        late = (time.monotonic() - asleep - SLEEP) * 1e3
        if late > least:
            stops.append(late)
            # one call: threads write beside each other
            os.write(1, f'{time.time():.3f} {processor} {late:.1f}\n'.encode())


def main():
    least, stops, refused = float(sys.argv[1]), [], []
    processors = os.sched_getaffinity(0)
    begun = threading.Barrier(len(processors) + 1)
    for processor in processors:
        threading.Thread(target=watch, args=(processor, least, stops, refused, begun), daemon=True).start()
    begun.wait()
    sys.stdin.read()
    if refused:
        sys.exit(f'processors cannot be watched: {refused[0]}')
    print(len(stops), max(stops, default=0.0), flush=True)


if __name__ == '__main__':
    main()
