"""Compares two servers, or one server and recorded answers, over the corpus.

    oracle.py HOST_A HOST_B [FILE...]        A is the server under test, B the one that is right
    oracle.py --golden HOST_A [FILE...]      B's answers come from conformance/golden/*.json
    oracle.py --golden HOST_A --planted      each difference of planted.py is put into the answers: does the corpus find it?
    oracle.py --record HOST_B [FILE...]      writes those from a real Cassandra

Where a statement says `-- cassandra fails`, an answer of Cassandra's that is an exception nobody meant is not compared, and there
must be one. In a generated file (gen_*) such an answer is not compared wherever it is, nor what is asked of a table
after a write to it failed so; a difference is shown with the fewest statements of its table that lead to it.

Options: --without FEATURE (leave out files that say `-- needs FEATURE`), --messages (show differing error texts too),
--show N (differences shown, default 40), --summary FILE (a JSON line of counts), --known FILE (a list of statements as
`file:line` that are known to differ: these are counted apart), --replicas N (A is in a ring: keyspaces of one replica have N, and
statements are at ALL, or at --level, and SELECT at --reads), --older (B is of an
older release than the recorded answers: what it refuses and they do not, or has no syntax for, is left out). HOST may be HOST:PORT. Exit code 1 when an answer differs.
"""

import argparse
import difflib
import json
import os
import re
import sys
import time

import shrink
import wire
from corpus import parse
from mistakes import Spoiled, is_mistake
from planted import PLANTED, Planter
from run import Replicated, Server

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, '..', 'corpus')
SHRUNK_A_FILE = 3  # differences of a file that are worth the replays
SYNTAX_ERROR = '2000'
# Run only when named: statements about what is not served yet, and those for nodes with other settings than the defaults.
APART = [os.path.join(HERE, '..', folder) for folder in ('later', 'settings')]
GOLDEN = os.path.join(HERE, '..', 'golden')


def server(text, login=None, replicas=None, level='ALL', reads=None):
    host, _, port = text.partition(':')
    if replicas is None:
        return Server(host, int(port or 9042), login)
    found = Replicated(host, int(port or 9042), login)
    found.replicas, found.level, found.reads = replicas, level, reads
    return found


def golden_path(path):
    return os.path.join(GOLDEN, os.path.splitext(os.path.basename(path))[0] + '.json')


def write_golden(path, entries):
    with open(golden_path(path), 'w', encoding='ascii') as f:
        f.write('[\n' + ',\n'.join(json.dumps(e) for e in entries) + '\n]\n')


def known_differences(path):
    """The statements that a list names: `file:line` in backquotes at the start of an item."""
    with open(path, encoding='utf-8') as f:
        return set(re.findall(r'^- `(\w+:\d+)`', f.read(), re.MULTILINE))


def name(path, step):
    return f'{os.path.splitext(os.path.basename(path))[0]}:{step.line}'


def comparable(ours, theirs, fails=False):
    """Both answers without the texts whose wording is only reported.

    SERVER_ERROR from Cassandra is an exception of its own that nobody meant: there any error will do. If it is said of the
    statement that it `fails` so, any answer will do.
    """
    if fails and is_mistake(theirs):
        return [dict(kind='mistake')] * 2
    pair = []
    for answer in (ours, theirs):
        answer = dict(answer)
        if answer['kind'] in ('error', 'closed'):
            answer.pop('message', None)
            if theirs.get('code') == '0000':
                answer = dict(kind=answer['kind'])
        pair.append(answer)
    return pair


def plain_json(answers):
    return json.loads(json.dumps(answers))


def fails(step):
    """Is it said of a statement that Cassandra answers it by mistake?"""
    return step.get('cassandra') == 'fails'


def agree(ours, theirs, failing=False):
    """Do both servers answer alike, as far as is compared?"""
    if failing and not any(map(is_mistake, theirs)):
        return False  # nothing that is left out is left out for nothing
    pairs = zip(plain_json(ours), plain_json(theirs))
    return len(ours) == len(theirs) and all(a == b for a, b in (comparable(*pair, failing) for pair in pairs))


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
        self.known, self.met, self.mended = set().union(*map(known_differences, args.known)), 0, []
        self.left_out, self.quiet, self.found = 0, False, []
        self.unknown = 0

    def compare(self, path, step, ours, theirs):
        self.statements += 1
        self.answers += max(len(ours), len(theirs))
        theirs, ours = plain_json(theirs), plain_json(ours)
        same = agree(ours, theirs, fails(step))
        self.left_out += fails(step)
        wording = same and ours != theirs
        self.messages += wording
        if name(path, step) in self.known:
            if same:
                self.mended.append(name(path, step))
            else:
                self.met += 1
                return same
        self.different += not same
        if not same:
            self.found.append(name(path, step))
        if self.quiet or same and not (wording and self.args.messages):
            return same
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


def refuses(answers):
    """Is a statement one that a server does not take?"""
    return any(answer['kind'] == 'error' for answer in answers)


def cannot_read(answers):
    """Is a statement one of which a server does not know the syntax?"""
    return any(answer['kind'] == 'error' and answer['code'] == SYNTAX_ERROR for answer in answers)


def explain(path, servers, steps, at):
    """Prints the shortest way found to a difference of a generated file."""
    told = shrink.shrink(servers, steps, at, lambda ours, theirs: not agree(ours, theirs))
    print(f'to {os.path.basename(path)}:{steps[at].line}' + (' in short:' if told else ' alone there is no difference'))
    for step in told or []:
        print('\n'.join('    ' + line[:1000] for line in shrink.lines(step)))


def corpus_files(args):
    files = args.files or sorted(os.path.join(CORPUS, f) for f in os.listdir(CORPUS) if f.endswith('.cql'))
    for path in files:
        if not os.path.exists(path):
            named = path if path.endswith('.cql') else path + '.cql'
            path = next((p for p in (os.path.join(folder, named) for folder in [CORPUS] + APART) if os.path.exists(p)), named)
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
    parser.add_argument('--known', metavar='FILE', action='append', default=[])
    parser.add_argument('--planted', action='store_true')
    parser.add_argument('--replicas', type=int, metavar='N')
    parser.add_argument('--level', default='ALL')
    parser.add_argument('--reads', metavar='LEVEL')
    parser.add_argument('--older', action='store_true')
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
    left = server(args.golden or args.rest[0], args.login, args.replicas, args.level, args.reads)
    right = None if args.golden else server(args.rest[1], args.login)
    if args.planted:
        return show_planted(args, left)
    report = Report(args)
    run(args, report, left, right)
    if args.known:
        print(f'{report.met} of {len(report.known)} known differences met')
        if report.mended:
            print(f'no longer differ, strike them out of {", ".join(args.known)}: {" ".join(report.mended)}')
    print(f'{report.statements} statements compared ({report.answers} answers), {report.different} differ, '
          f'{report.messages} differ in the wording of an error only')
    if report.left_out:
        print(f'{report.left_out} left out: Cassandra failed by mistake there, or at a write before')
    if args.older:
        print(f'{report.unknown} that the older release does not know')
    if args.summary:
        with open(args.summary, 'w', encoding='utf-8') as f:
            json.dump(dict(statements=report.statements, different=report.different, wording=report.messages), f)
    return 1 if report.different or report.statements == 0 else 0


def show_planted(args, left):
    """Plants each difference of planted.py in turn; 1 if the corpus does not find one."""
    missed, plain = 0, Report(args)
    plain.quiet = True
    run(args, plain, left, None)
    if plain.found:
        print(f'differ without any fault, and are not counted: {" ".join(plain.found)}')
    print(f"{'planted':<28}{'answers':>8}{'found by':>10}  first by, and what it is")
    for planted, (_, what) in PLANTED.items():
        report = Report(args)
        report.quiet = True
        report.known |= set(plain.found)
        wire.Connection.planter = Planter(planted)
        run(args, report, left, None)
        missed += report.different == 0
        print(f"{planted:<28}{wire.Connection.planter.planted:>8}{report.different or 'nothing':>10}  {(report.found or [''])[0]}: {what}", flush=True)
    wire.Connection.planter = None
    left.close()
    left.clean()
    print(f'{len(PLANTED)} differences planted, {len(PLANTED) - missed} found')
    return 1 if missed else 0


def run(args, report, left, right):
    """The corpus on one server, or on two."""
    for path, steps in corpus_files(args):
        started, before = time.monotonic(), report.different
        left.clean()
        if right:
            right.clean()
        recorded = None
        newer = json.load(open(golden_path(path), encoding='ascii')) if args.older else None
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
        generated, spoiled, found = os.path.basename(path).startswith('gen_'), Spoiled(), []
        for i, step in enumerate(steps):
            if spoiled.skips(step):
                continue
            theirs = right.run(step) if right else recorded[i]['answers']
            if newer and (refuses(theirs) and not refuses(newer[i]['answers']) or cannot_read(theirs) and not cannot_read(newer[i]['answers'])):
                report.unknown += 1
                continue
            if name(path, step) in report.known:
                step.directives.pop('settle', None)  # what is known to fail is not waited for
            left.wanted = next((answer['event'] for answer in theirs if answer['kind'] == 'event'), None)
            ours = left.run(step)
            if generated and any(map(is_mistake, theirs)) and not agree(ours, theirs):
                spoiled.note(step)
            elif not report.compare(path, step, ours, theirs) and generated and name(path, step) not in report.known:
                found.append(i)
        report.left_out += spoiled.left_out
        if right:
            for at in found[:SHRUNK_A_FILE]:
                explain(path, [left, right], steps, at)
        if not report.quiet:
            print(f'{os.path.basename(path)}: {len(steps)} statements, {report.different - before} differ, '
                  f'{time.monotonic() - started:.1f} s', flush=True)
    left.clean()
    if right:
        right.clean()


if __name__ == '__main__':
    sys.exit(main())
