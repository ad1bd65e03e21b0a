"""A family of generated tables: the same statements to servers of either make, the same questions, and their SSTables.

    family.py write DIR SEED COUNT [RELEASE]   a file of statements and questions for each table; counts of what is in them;
                                               RELEASE may end in -compact: all tables WITH COMPACT STORAGE
    family.py fill HOST DIR ROUND              the statements of a round; between two rounds the caller flushes
    family.py compacted DIR                    names of the tables that the caller then compacts
    family.py ask HOST DIR OUT                 the answers to all questions
    family.py answers A B                      two files of answers; exit code 1 if they differ
    family.py exports A B                      two folders that Examine.java wrote; exit code 1 if they differ
    family.py plant EXPORTS FOLDER             mistakes in copies of SSTables
    family.py found FOLDER PLANTED EXPORTS     exit code 1 if one of them was not found
"""

import collections
import gzip
import json
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))

import plants  # noqa: E402
import wire  # noqa: E402
from exports import compare_exports, different  # noqa: E402
import compact  # noqa: E402
from schema import KEYSPACE, Release  # noqa: E402
from writes import NOW, ROUNDS, before, questions, writes  # noqa: E402

SHOWN = 20
TIMEOUT_SECONDS = 120


def write(folder, seed, count, release='5.0'):
    os.makedirs(folder, exist_ok=True)
    tags = collections.Counter()
    statements = asked = 0
    for n in range(int(count)):
        s = compact.schema(random.Random(f'{seed} {n}'), n, Release(release))
        lines = []
        for number in range(ROUNDS):
            lines.append(f'-- round {number}')
            lines += s.create() if number == 0 else s.alter(before(number))
            lines += (compact.compact_writes if s.compact else writes)(s, number)
        lines.append('-- questions')
        for at, page, question in questions(s):
            lines.append(f'{at} {page} {question}')
            asked += 1
        if any('\n' in line for line in lines):
            raise ValueError(f'{s.name}: a statement of several lines')
        statements += sum(not line.startswith('-- ') for line in lines)
        tags.update(s.tags)
        with open(os.path.join(folder, s.name + '.cql'), 'w', encoding='utf-8') as f:
            f.write('\n'.join([f"-- {', '.join(sorted(s.tags))}"] + lines) + '\n')
    print(f'{count} tables, {statements - asked} statements, {asked} questions')
    for tag, found in sorted(tags.items()):
        print(f'{found:6} {tag}')


def sections(folder):
    """(table, section, its lines) of all files."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.cql'):
            continue
        section, lines = '', []
        with open(os.path.join(folder, name), encoding='utf-8') as f:
            for line in f.read().split('\n'):
                if line.startswith('-- '):
                    yield name[:-4], section, lines
                    section, lines = line[3:], []
                elif line:
                    lines.append(line)
        yield name[:-4], section, lines


def connect(host):
    return wire.Connection(host, 9042, 5, timeout=TIMEOUT_SECONDS)


def fill(host, folder, number):
    connection, count = connect(host), 0
    options = wire.Options(now=NOW)
    if number == '0':
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        connection.query(f'CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}')
    refused = []
    for table, section, lines in sections(folder):
        if section != f'round {number}':
            continue
        for line in lines:
            answer = connection.query(line, options)
            count += 1
            if answer['kind'] == 'error':
                refused.append(f"{table}: {line}\n  {answer['message']}")
    print(f'{host}: round {number}, {count} statements, {len(refused)} refused')
    if refused:
        raise SystemExit('\n'.join(refused[:SHOWN]))


def compacted(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding='utf-8') as f:
            if name.endswith('.cql') and 'compacted' in f.readline().split('-- ')[1].strip().split(', '):
                print(name[:-4], end=' ')
    print()


def rows_of(connection, question, at, page):
    """All rows, as hex; or the code of the error."""
    rows, state = [], None
    while True:
        answer = connection.query(question, wire.Options(now=at, page_size=page or None, paging_state=state))
        if answer['kind'] != 'rows':
            return [answer['kind'], answer.get('code'), answer.get('message')]
        rows += [[None if cell is None else cell.hex() for cell in row] for row in answer['rows']]
        state = answer['metadata'].get('paging_state')
        if not state:
            return rows


def ask(host, folder, path):
    connection, found, refused = connect(host), {}, []
    for table, section, lines in sections(folder):
        if section != 'questions':
            continue
        for line in lines:
            at, page, question = line.split(' ', 2)
            found[line] = rows_of(connection, question, int(at), int(page))
            if found[line][:1] == ['error']:
                refused.append(f'{line}\n  {found[line]}')
    with gzip.GzipFile(path, 'wb', 6, mtime=0) as f:
        f.write(json.dumps(found, indent=0).encode())
    print(f'{host}: {len(found)} questions, {sum(map(len, found.values()))} rows, {len(refused)} refused')
    if refused:
        raise SystemExit('\n'.join(refused[:SHOWN]))


def answers(a, b):
    ours, theirs = (json.load(gzip.open(path)) for path in (a, b))
    names = sorted(set(ours) | set(theirs))
    differ = [n for n in names if ours.get(n) != theirs.get(n)]
    tables = {re.search(f'{KEYSPACE}.(\\w+)', name).group(1): name for name in reversed(differ)}
    for name in list(tables.values())[:SHOWN]:  # one of each table
        print(f'{name}: {different(ours.get(name), theirs.get(name))}')
    print(f'{len(names)} answers compared, {len(differ)} differ')
    return 1 if differ or not names else 0


def main():
    command, *rest = sys.argv[1:]
    verbs = (write, fill, compacted, ask, answers, compare_exports, plants.plant, plants.found)
    return {verb.__name__.removeprefix('compare_'): verb for verb in verbs}[command](*rest) or 0


if __name__ == '__main__':
    sys.exit(main())
