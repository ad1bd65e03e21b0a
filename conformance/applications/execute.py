"""Runs CQL statements: execute.py HOST STATEMENT..."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))

import wire  # noqa: E402


def main():
    connection = wire.Connection(sys.argv[1], timeout=60)
    for statement in sys.argv[2:]:
        answer = connection.query(statement)
        if answer['kind'] in ('error', 'closed'):
            print(f'{statement}: {answer}', file=sys.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
