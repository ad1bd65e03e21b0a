#!/usr/bin/env python3
"""Replicas of a ring are made to differ in each way of `ways.py`, and repaired in each way of a list.

    differ.py SCRATCH RELEASE NAME=COORDINATOR=SCOPE=WORDS... [--node KIND HOST DIR NODETOOL...]...

Three nodes have three replicas of all. KIND is `ours` or `theirs`, DIR has the node's folder `data`, NODETOOL is the
command line of its nodetool. For each scenario there is a keyspace; COORDINATOR is the place of the node that is told
`repair WORDS`, SCOPE what of it must be equal afterwards: `all`, `table` (the first one), `range` (a part of a vnode's
range), `each` (all nodes are told in turn).

For each replica in turn the other two get writes that it misses. Before a repair the SSTables of all nodes, merged by
Cassandra's own iterators, differ in all that is planned and in nothing else, and a preview says so. After it they are
equal to what the others had; a preview says that too, and a second repair streams nothing.
"""

import collections
import json
import os
import re
import sys
import time

import ways
from nodes import Exporter, Failed, Node, Ring, problems_of, until

VICTIMS = (1, 2, 3)
# what a repair of a scope names: none for all
TABLES = {'all': [], 'each': [], 'range': [], 'table': ['lz4']}
IN_SYNC = 'Previewed data was in sync'
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
MASKS = [
    (UUID, 'UUID'),
    (re.compile(r'\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]'), '[TIME]'),
    (re.compile(r'finished in .*'), 'finished in DURATION'),
    (re.compile(r'(epair command) #\d+'), r'\1 #N'),
    (re.compile(r'\[(\(-?\d+,-?\d+\](, )?)+\]'), '[RANGES]'),
    (re.compile(r'repair_[a-z0-9_]+'), 'KEYSPACE'),
]

Scenario = collections.namedtuple('Scenario', 'name coordinator scope words')


class Report:
    def __init__(self):
        self.problems = 0

    def ok(self, text):
        print(f'ok {text}', flush=True)

    def wrong(self, text):
        self.problems += 1
        print(f'WRONG: {text}', flush=True)

    def check(self, holds, text, otherwise=''):
        if holds:
            self.ok(text)
        else:
            self.wrong(f'{text}: {otherwise}' if otherwise else f'not: {text}')


def keyspace_of(scenario):
    return 'repair_' + re.sub('[^a-z0-9]+', '_', scenario.name.lower())


def note(text):
    print(f'{time.strftime("%H:%M:%S")} {text}', flush=True)


# What replicas have


def create(ring, keyspaces, release):
    """Step by step: Cassandra fails at a table whose type it learns of later."""
    def each(texts):
        for keyspace in keyspaces:
            for text in texts:
                ring.nodes[0].must(text.replace('KS', keyspace))
            ring.until_agreed()
    each(["CREATE KEYSPACE KS WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3}", 'CREATE TYPE KS.pair (a int, b text)'])
    each([f'CREATE TABLE KS.{table.name} {table.definition}' for table in ways.tables(release)])


def fill(ring, keyspace, release):
    """All replicas get the same, through each node."""
    ring.each(lambda node: node.must(f'USE {keyspace}'))
    at = 0
    for table in ways.tables(release):
        for statement in ways.bases(table, VICTIMS):
            ring.nodes[at % len(ring.nodes)].must(statement, 'ALL')
            at += 1


def miss(ring, victim, keyspaces, release):
    """A replica misses its part of each way, and the others get it."""
    def write(others):
        for keyspace in keyspaces:
            for other in others:
                other.must(f'USE {keyspace}')
            at = 0
            for table in ways.tables(release):
                for statement in ways.missed(table, victim.number):
                    # both of them have acknowledged it then
                    others[at % 2].must(statement, 'QUORUM')
                    at += 1
    ring.without(victim, write)


def differing(exports):
    """{(table, key): replicas whose partition is not that of most}."""
    found = {}
    for table in sorted({table for export in exports for table in export}):
        for key in {key for export in exports for key in export.get(table, ())}:
            texts = [tuple(export.get(table, {}).get(key, (0, ()))[1]) for export in exports]
            usual, _ = collections.Counter(texts).most_common(1)[0]
            odd = [number for number, text in enumerate(texts, 1) if text != usual]
            if odd:
                found[table, key] = odd
    return found


def shown(key):
    return bytes.fromhex(key).decode()


def token_of(exports, table, key):
    return next(export[table][key][0] for export in exports if key in export.get(table, {}))


def merged(exports, planned):
    """What all replicas are to have: of each partition what those have that missed nothing of it."""
    whole = {}
    for table in sorted({table for export in exports for table in export}):
        for key in {key for export in exports for key in export.get(table, ())}:
            witness = planned.get((table, key), 0) % len(exports)
            partition = exports[witness].get(table, {}).get(key)
            if partition:
                whole.setdefault(table, {})[key] = partition
    return whole


def compare(report, name, export, wanted, what):
    """A node has what it is to have, to the last cell."""
    wrong = []
    for table in sorted(set(wanted) | set(export)):
        theirs, ours = wanted.get(table, {}), export.get(table, {})
        for key in sorted(set(theirs) | set(ours)):
            if theirs.get(key) != ours.get(key):
                lines, had = theirs.get(key, (0, []))[1], ours.get(key, (0, []))[1]
                wrong.append(f'{table} {shown(key)!r}: lacks {[line for line in lines if line not in had][:2]}, '
                             f'has {[line for line in had if line not in lines][:2]} beside it')
    count = sum(len(table) for table in wanted.values())
    report.check(not wrong, f'{name} {what}: {count} partitions', f'{len(wrong)} wrong, e.g. ' + '; '.join(wrong[:3])[:1500])


# What a repair is about


class Scope:
    """What of the planned differences a repair ends."""

    def __init__(self, ring, scenario, release, planned, exports):
        self.scenario, self.release, self.planned, self.keyspace = scenario, release, planned, keyspace_of(scenario)
        self.options, self.tables = [], TABLES[scenario.scope]
        tokens = {of: token_of(exports, *of) for of in planned}
        self.ended = set(planned)
        if scenario.scope == 'table':
            self.ended = {of for of in planned if of[0] == 'lz4'}
        if scenario.scope == 'range':
            left, right = self.part_of_range(ring, tokens)
            self.options = ['-st', str(left), '-et', str(right)]
            self.ended = {of for of in planned if left < tokens[of] <= right}
        self.tokens = tokens

    def part_of_range(self, ring, tokens):
        """The first half of what is planned in the vnode's range that has most of it."""
        ends = ring.nodes[0].tokens()
        inside = [sorted(token for token in tokens.values() if left < token <= right) for left, right in zip(ends, ends[1:])]
        most = max(range(len(inside)), key=lambda at: len(inside[at]))
        some = sorted(set(inside[most]))
        if len(some) < 4:
            raise Failed(f'too few planned differences in a range: {some}')
        return ends[most], some[len(some) // 2]

    def words(self, *more):
        return ['repair', *more, *self.options, self.keyspace, *self.tables]


def mismatching(text, keyspace, says_ranges):
    """What a preview says of each table: ranges that differ. Of many Cassandra says some, and 4.1 says none."""
    found = {}
    for block in re.split(rf'^{keyspace}\.', text.split('condition satisfied')[0], flags=re.M)[1:]:
        table = block.split(' ')[0]
        if ' - 0 ranges' in block.splitlines()[0]:
            continue
        line = re.search(r'Mismatching ranges: (.*)', block)
        pairs = re.findall(r'\((-?\d+),(-?\d+)\]', line.group(1)) if line else []
        is_part = line.group(1).rstrip().endswith('...') if line else not says_ranges
        found[table] = [(0, 0)] if is_part else [tuple(map(int, pair)) for pair in pairs]
    return found


def within(token, ranges):
    return any(left < token <= right or (left >= right and (token > left or token <= right)) for left, right in ranges)


def check_before(report, scope, coordinator, text):
    """A preview before the repair names all that it is to end, and nothing else."""
    when = f'{scope.scenario.name}: preview of {coordinator.name} before'
    found = mismatching(text, scope.keyspace, coordinator.is_ours or not scope.release.startswith('4.'))
    missing = [f'{table} {shown(key)!r}' for table, key in sorted(scope.ended)
               if not within(scope.tokens[table, key], found.get(table, []))]
    report.check(not missing and IN_SYNC not in text, f'{when}: {len(scope.ended)} differences', f'lacks {missing[:5]} in {text[-600:]}')
    beyond = set(found) - {table for table, _ in scope.ended}
    report.check(not beyond, f'{when}: no other tables', f'{beyond}')


def check_after(report, scope, coordinator, kind):
    text = coordinator.nodetool(*scope.words('-prv', *kind))
    report.check(IN_SYNC in text, f'{scope.scenario.name}: preview of {coordinator.name} after: in sync', text[-600:])


def streamed(lines):
    return [line for line in lines if 'Stream #' in line or 'out of sync' in line]


def whole_output(text):
    """A repair as nodetool prints it, without what differs from run to run."""
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    # Cassandra's nodetool may miss the first events, as it learns the number of the command late
    return [line for line in text.splitlines() if line and 'Starting repair command' not in line and not line.startswith('[TIME] Repair session')]


def coordinators(ring, scenario):
    first = ring.nodes[scenario.coordinator]
    if scenario.scope != 'each':
        return [first]
    return [first] + ring.others(first)


def repair(ring, report, scenario, exporter, outputs, release):
    keyspace, planned = keyspace_of(scenario), ways.planned(VICTIMS)
    is_full = '-full' in scenario.words
    kind = ['-full'] if is_full else []
    first = ring.nodes[scenario.coordinator]
    early = None
    if is_full and scenario.scope != 'range':
        # all is in memtables still; whoever validates flushes it, except for an incremental repair
        early = first.nodetool('repair', '-prv', *kind, keyspace, *TABLES[scenario.scope])
    now = int(time.time())
    before = exporter.take(keyspace, now)
    check_planned(report, scenario, planned, before)
    wanted = merged(before, planned)
    scope = Scope(ring, scenario, release, planned, before)
    check_before(report, scope, first, early or first.nodetool(*scope.words('-prv', *kind)))
    ring.each(lambda node: hear(report, node))

    began = time.time()
    for node in coordinators(ring, scenario):
        text = node.nodetool(*scope.words(*scenario.words))
        outputs.setdefault(tuple(scenario.words) + (scenario.scope,), {})[node.is_ours] = whole_output(text)
        report.check('Repair completed successfully' in text, f'{scenario.name}: repair by {node.name}', text[-600:])
    took = time.time() - began
    lines = [line for node in ring.nodes for line in hear(report, node)]
    report.check(bool(streamed(lines)), f'{scenario.name}: it streams')

    after = exporter.take(keyspace, now)
    for node, old, new in zip(ring.nodes, before, after):
        left = {of for of in planned if of not in scope.ended}
        mixed = {table: dict(partitions) for table, partitions in wanted.items()}
        for table, key in left:
            if key in old.get(table, {}):
                mixed[table][key] = old[table][key]
            else:
                mixed[table].pop(key, None)
        compare(report, f'{scenario.name}: {node.name}', new, mixed, 'has all' if not left else f'has {len(scope.ended)} of {len(planned)} more')
    if not is_full:
        # a JVM marks what was repaired when it compacts the next time, which may be minutes; ours at once
        for node in ring.nodes:
            if not node.is_ours:
                node.nodetool('repair_admin', 'cleanup', keyspace)
    for node in ring.nodes if scenario.scope == 'all' else [first]:
        check_after(report, scope, node, kind)
    if not is_full:
        text = first.nodetool(*scope.words('-vd'))
        report.check('Repaired data is in sync' in text, f'{scenario.name}: what is repaired is in sync', text[-600:])
    ring.each(lambda node: hear(report, node))

    files = ring.each(lambda node: node.files(keyspace))
    for node in coordinators(ring, scenario):
        text = node.nodetool(*scope.words(*scenario.words))
        report.check('Repair completed successfully' in text, f'{scenario.name}: second repair by {node.name}', text[-600:])
    lines = streamed([line for node in ring.nodes for line in hear(report, node)])
    report.check(not lines, f'{scenario.name}: a second repair streams nothing', str(lines[:3]))
    if is_full:
        report.check(ring.each(lambda node: node.files(keyspace)) == files, f'{scenario.name}: it leaves all SSTables as they are')
    print(f'figures {scenario.name} | {first.name} | {" ".join(scenario.words)} | {len(scope.ended)} of {len(planned)} | {took:.1f} s', flush=True)


def check_planned(report, scenario, planned, exports):
    found = differing(exports)
    lacking = [f'{table} {shown(key)!r} of {victim}: {found.get((table, key))}' for (table, key), victim in planned.items()
               if found.get((table, key)) != [victim]]
    beyond = [f'{table} {shown(key)!r}: {odd}' for (table, key), odd in found.items() if (table, key) not in planned]
    report.check(not lacking, f'{scenario.name}: before it {len(planned)} planned differences', f'lacks {lacking[:5]}')
    report.check(not beyond, f'{scenario.name}: before it no other differences', f'{beyond[:5]}')


def hear(report, node):
    lines = node.news()
    report_problems(report, node, lines)
    return lines


def report_problems(report, node, lines):
    for problem in problems_of(node, lines):
        report.wrong(problem)


# What is remembered


def shape(value):
    """A value without what differs from repair to repair."""
    if isinstance(value, list):
        return sorted({shape(each) for each in value})
    if isinstance(value, dict):
        return {name: shape(each) if name not in ('parallelism', 'incremental', 'previewKind') else each for name, each in sorted(value.items())}
    text = UUID.sub('UUID', str(value))
    text = re.sub(r'\d{4}-\d\d-\d\d[ T][\d:.]+Z?', 'TIME', text)
    text = re.sub(r'127\.0\.0\.\d+', 'ADDRESS', text)
    text = re.sub(r'repair_[a-z0-9_]+', 'KEYSPACE', text)
    return re.sub(r'-?\d{6,}', 'TOKEN', text)


def histories(ring, report, scenarios):
    """Rows of repairs that both kinds of nodes were told of in the same words have the same shapes."""
    node = ring.nodes[0]
    parents = node.rows('SELECT JSON * FROM system_distributed.parent_repair_history')
    sessions = node.rows('SELECT JSON * FROM system_distributed.repair_history')
    shapes = {}
    for scenario in scenarios:
        keyspace = keyspace_of(scenario)
        of = [row for row in parents if row['keyspace_name'] == keyspace]
        by = [row for row in sessions if row['keyspace_name'] == keyspace]
        is_ours = ring.nodes[scenario.coordinator].is_ours
        report.check(len(of) == (2 if scenario.scope != 'each' else 6), f'{scenario.name}: rows of parent_repair_history', str(len(of)))
        report.check(bool(by) and all(row['status'] == 'SUCCESS' for row in by), f'{scenario.name}: rows of repair_history succeeded', str(by)[:600])
        if scenario.scope != 'each':
            seen = sorted({json.dumps(shape(row), sort_keys=True) for row in of}), sorted({json.dumps(shape(row), sort_keys=True) for row in by})
            shapes.setdefault((tuple(scenario.words), scenario.scope), {})[is_ours] = seen
    for what, both in shapes.items():
        if len(both) == 2:
            for name, ours, theirs in zip(('parent_repair_history', 'repair_history'), both[True], both[False]):
                report.check(ours == theirs, f'{" ".join(what[0])}, {what[1]}: rows of {name} look alike', f'ours {ours}, theirs {theirs}')


def printed(report, outputs):
    for what, both in outputs.items():
        if len(both) == 2:
            report.check(both[True] == both[False], f'{" ".join(what)}: nodetool prints alike', f'ours {both[True]}, theirs {both[False]}')


def parse(arguments):
    at = arguments.index('--node')
    scratch, release, *texts = arguments[:at]
    scenarios = []
    for text in texts:
        name, coordinator, scope, words = text.split('=')
        scenarios.append(Scenario(name, int(coordinator), scope, words.split()))
    groups = []
    for word in arguments[at:]:
        if word == '--node':
            groups.append([])
        else:
            groups[-1].append(word)
    return scratch, release, scenarios, [Node(number, words) for number, words in enumerate(groups, 1)]


def main():
    scratch, release, scenarios, nodes = parse(sys.argv[1:])
    os.makedirs(scratch, exist_ok=True)
    ring, report = Ring(scratch, nodes), Report()
    try:
        ring.probe()
        keyspaces = [keyspace_of(scenario) for scenario in scenarios]
        create(ring, keyspaces, release)
        exporter = Exporter(ring)
        note(f'{len(keyspaces)} keyspaces')
        for keyspace in keyspaces:
            fill(ring, keyspace, release)
        for victim in nodes:
            note(f'{victim.name} misses writes')
            miss(ring, victim, keyspaces, release)
        expired = time.time() + 3
        until('expired', lambda: time.time() > expired)
        ring.each(lambda node: report_problems(report, node, node.news()))
        outputs = {}
        for scenario in scenarios:
            note(scenario.name)
            try:
                repair(ring, report, scenario, exporter, outputs, release)
            except Failed as failure:
                report.wrong(f'{scenario.name}: {failure}')
                ring.each(lambda node: hear(report, node))
        histories(ring, report, scenarios)
        printed(report, outputs)
        exporter.close()
    except Failed as failure:
        report.wrong(str(failure))
        ring.each(lambda node: hear(report, node))
    note(f'done, {report.problems} wrong')
    sys.exit(1 if report.problems else 0)


if __name__ == '__main__':
    main()
