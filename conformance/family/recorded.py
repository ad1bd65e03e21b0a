"""A small family as Cassandra left it in each format, so that it can be read where there is no JVM.

    recorded.py record NAME DIR ANSWERS    the data directory of a stopped Cassandra, and what it answered
    recorded.py unpack NAME DIR            a recorded data directory
    recorded.py check HOST NAME            the recorded questions; exit code 1 if an answer differs
"""

import gzip
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, '..', 'formats'))

import formats  # noqa: E402
from exports import different  # noqa: E402
from family import connect, rows_of  # noqa: E402

RECORDED = os.path.join(HERE, 'recorded')
SHOWN = 20


def answers_of(name):
    return os.path.join(RECORDED, name + '.json.gz')


def record(name, directory, answers):
    os.makedirs(RECORDED, exist_ok=True)
    formats.pack(os.path.join(RECORDED, name), directory)
    shutil.copy(answers, answers_of(name))


def unpack(name, directory):
    formats.unpack(os.path.join(RECORDED, name), directory)


def check(host, name):
    connection = connect(host)
    with gzip.open(answers_of(name)) as f:
        wanted = json.load(f)
    differ = 0
    for line, rows in wanted.items():
        at, page, question = line.split(' ', 2)
        found = rows_of(connection, question, int(at), int(page))
        if found != rows:
            differ += 1
            if differ <= SHOWN:
                print(f'{line}: {different(found, rows)}')
    print(f'{len(wanted)} answers compared, {differ} differ')
    return 1 if differ or not wanted else 0


def main():
    command, *rest = sys.argv[1:]
    return {verb.__name__: verb for verb in (record, unpack, check)}[command](*rest) or 0


if __name__ == '__main__':
    sys.exit(main())
