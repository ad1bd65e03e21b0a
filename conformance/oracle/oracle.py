"""Compares two servers, or one server and recorded answers, over the corpus.

    oracle.py HOST_A HOST_B [FILE...]        A is the server under test, B the one that is right
    oracle.py --golden HOST_A [FILE...]      B's answers come from conformance/golden/*.json
    oracle.py --record HOST_B [FILE...]      writes those from a real Cassandra

Options: --without FEATURE (leave out files that say `-- needs FEATURE`), --messages (show differing error texts too),
--show N (differences shown, default 40), --summary FILE (a JSON line of counts), --known FILE (a list of statements as
`file:line` that are known to differ: these are counted apart). HOST may be HOST:PORT. Exit code 1 when an answer differs.
"""

import argparse
import difflib
import json
import os
import re
import sys
import time

from corpus import parse
from run import Server

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, '..', 'corpus')
GOLDEN = os.path.join(HERE, '..', 'golden')


def server(text, login=None):
    host, _, port = text.partition(':')
    return Server(host, int(port or 9042), login)


def golden_path(path):
    return os.path.join(GOLDEN, os.path.splitext(os.path.basename(path))[0] + '.json')


def write_golden(path, entries):
    with open(golden_path(path), 'w', encoding='ascii') as f:
        f.write('[\n' + ',\n'.join(json.dumps(e) for e in entries) + '\n]\n')


def known_differences(path):
    """The statements that a list names: `file:line` in backquotes at the start of an item."""
    if path is None:
        return set()
    with open(path, encoding='ascii') as f:
        return set(re.findall(r'^- `(\w+:\d+)`', f.read(), re.MULTILINE))


def name(path, step):
    return f'{os.path.splitext(os.path.basename(path))[0]}:{step.line}'


def comparable(ours, theirs):
    """Both answers without the texts whose wording is only reported.

    SERVER_ERROR from Cassandra is an exception of its own that nobody meant: there any error will do.
    """
    pair = []
    for answer in (ours, theirs):
        answer = dict(answer)
        if answer['kind'] in ('error', 'closed'):
            answer.pop('message', None)
            if theirs.get('code') == '0000':
                answer = dict(kind=answer['kind'])
        pair.append(answer)
    return pair


def show(answer):
    """Lines for the unified view: one row or field a line."""
    lines = []
    for key, val in answer.items():
        if key == 'rows':
            lines += ['row ' + json.dumps(r) for r in val]
        elif key == 'pages':
            for i, page in enumerate(val):
                lines.append(f'page {i}: {len(page)} rows')
                lines += ['row ' + json.dumps(r) for r in page]
        elif isinstance(val, list):
            lines += [f'{key}: {json.dumps(v)}' for v in val]
        else:
            lines.append(f'{key}: {json.dumps(val)}')
    return lines


class Report:
    """What was compared and what differed."""

    def __init__(self, args):
        self.args, self.statements, self.answers = args, 0, 0
        self.different, self.messages, self.shown = 0, 0, 0
        self.known, self.met, self.mended = known_differences(args.known), 0, []

    def compare(self, path, step, ours, theirs):
        self.statements += 1
        self.answers += max(len(ours), len(theirs))
        theirs = json.loads(json.dumps(theirs))
        ours = json.loads(json.dumps(ours))
        same = len(ours) == len(theirs) and all(a == b for a, b in map(comparable, ours, theirs))
        wording = same and ours != theirs
        self.messages += wording
        if name(path, step) in self.known:
            if same:
                self.mended.append(name(path, step))
            else:
                self.met += 1
                return same
        self.different += not same
        if same and not (wording and self.args.messages):
            return True
        self.shown += 1
        if self.shown > self.args.show:
            return same
        head = 'DIFFERENT' if not same else 'wording'
        print(f'{head} {os.path.basename(path)}:{step.line}: {step.title()[:300]}')
        left = [line for a in theirs for line in show(a)]
        right = [line for a in ours for line in show(a)]
        for line in list(difflib.unified_diff(left, right, 'Cassandra', 'server under test', lineterm='', n=2))[2:60]:
            print('    ' + line[:400])
        return same


def corpus_files(args):
    files = args.files or sorted(os.path.join(CORPUS, f) for f in os.listdir(CORPUS) if f.endswith('.cql'))
    for path in files:
        if not os.path.exists(path):
            path = os.path.join(CORPUS, path if path.endswith('.cql') else path + '.cql')
        steps = parse(path)
        needs = steps[-1].sticky.get('needs', set()) if steps else set()
        if needs & set(args.without):
            print(f'{os.path.basename(path)}: left out (needs {", ".join(sorted(needs))})')
            continue
        yield path, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--golden', metavar='HOST_A')
    parser.add_argument('--record', metavar='HOST_B')
    parser.add_argument('--login', metavar='USER:PASSWORD')
    parser.add_argument('--without', action='append', default=[])
    parser.add_argument('--messages', action='store_true')
    parser.add_argument('--show', type=int, default=40)
    parser.add_argument('--summary')
    parser.add_argument('--known', metavar='FILE')
    parser.add_argument('rest', nargs='*')
    args = parser.parse_args()
    hosts = 0 if args.golden or args.record else 2
    if len(args.rest) < hosts:
        parser.error('two hosts wanted')
    args.files = args.rest[hosts:]
    if args.record:
        return record(args)
    return compare(args)


def record(args):
    os.makedirs(GOLDEN, exist_ok=True)
    right = server(args.record, args.login)
    statements = 0
    for path, steps in corpus_files(args):
        right.clean()
        entries = []
        for step in steps:
            entries.append(dict(line=step.line, cql=step.title(), answers=right.run(step)))
        write_golden(path, entries)
        statements += len(entries)
        kinds = {}
        for e in entries:
            for a in e['answers']:
                kinds[a['kind']] = kinds.get(a['kind'], 0) + 1
        print(f'{os.path.basename(path)}: {len(entries)} statements recorded {kinds}')
    right.clean()
    print(f'{statements} statements recorded')
    return 0


def compare(args):
    report = Report(args)
    left = server(args.golden or args.rest[0], args.login)
    right = None if args.golden else server(args.rest[1], args.login)
    for path, steps in corpus_files(args):
        started, before = time.monotonic(), report.different
        left.clean()
        if right:
            right.clean()
        recorded = None
        if right is None:
            if not os.path.exists(golden_path(path)):
                print(f'{os.path.basename(path)}: no golden answers recorded')
                report.different += 1
                continue
            recorded = json.load(open(golden_path(path), encoding='ascii'))
            if [e['cql'] for e in recorded] != [s.title() for s in steps]:
                print(f'{os.path.basename(path)}: golden answers are of another text of this file; record them anew')
                report.different += 1
                continue
        for i, step in enumerate(steps):
            theirs = right.run(step) if right else recorded[i]['answers']
            if name(path, step) in report.known:
                step.directives.pop('settle', None)  # what is known to fail is not waited for
            report.compare(path, step, left.run(step), theirs)
        print(f'{os.path.basename(path)}: {len(steps)} statements, {report.different - before} differ, '
              f'{time.monotonic() - started:.1f} s', flush=True)
    left.clean()
    if right:
        right.clean()
    if args.known:
        print(f'{report.met} of {len(report.known)} known differences met')
        if report.mended:
            print(f'no longer differ, strike them out of {args.known}: {" ".join(report.mended)}')
    print(f'{report.statements} statements compared ({report.answers} answers), {report.different} differ, '
          f'{report.messages} differ in the wording of an error only')
    if args.summary:
        with open(args.summary, 'w', encoding='ascii') as f:
            json.dump(dict(statements=report.statements, different=report.different, wording=report.messages), f)
    return 1 if report.different or report.statements == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
