"""The corpus in every form: what a statement does may not hang on how it is asked, where its data lies and which node is asked.

    forms.py reads     [OPTIONS] [FILE...]   each SELECT in pages, prepared, in the other order, in each version of the protocol
    forms.py writes    [OPTIONS] [FILE...]   each modification prepared, in batches, as JSON, with conditions: what is read afterwards
    forms.py functions [OPTIONS]             functions that are not pure, wherever they may stand: --count statements each
    forms.py planted   [OPTIONS] [PLANT...]  each fault of plants.py in turn: is it found?
    forms.py record --host HOST [FILE...]    asks a real Cassandra the same, and records where its own forms deviate

Options: --node PROGRAM --nodetool PROGRAM --dir FOLDER --ips A,B,C: what to start, and where; or --host HOST: a node that is there.
--shards 1,2,3   --places memory,one,...   --rings 1,3 (replicas, in a ring of three): the layouts, one after the other; none: --rings 0
--share N: one form in N   --without FILE,...: leave files out   --known FILE: statements that are known to differ   --show N: differences shown.
Exit code 1 when anything differs, or a plant is not found.
"""

import argparse
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'oracle')]

import oracle  # noqa: E402
from impure import Impure  # noqa: E402
from nodes import Layout, Place, Programs, Running  # noqa: E402
from plants import PLANTED, between, name  # noqa: E402
from reads import Reads, Share  # noqa: E402
from report import DEVIATIONS, Deviations, Report  # noqa: E402
from stories import Story, Told  # noqa: E402
from values import Encoder  # noqa: E402
from writes import all_forms  # noqa: E402

# Files that say nothing of the forms of reads: what they ask changes by itself, or is about the schema and the node.
APART = {'system', 'virtual', 'describe', 'roles', 'syntax', 'keyspaces', 'table_options', 'disabled'}
# Files that wait for levels that no ring of three has, or are about the schema.
NOT_IN_RINGS = {'alter', 'consistency', 'gen_literals', 'indexes', 'tables'}
# Of a plant: one form in so many, and so many statements of each place of a function.
PLANTED_SHARE, PLANTED_COUNT, PLANTED_FUNCTIONS = 12, 24, 8


def files(args, layout):
    left_out = APART | (NOT_IN_RINGS if layout.ring > 1 else set()) | set(args.without.split(','))
    named = args.files or sorted(f for f in os.listdir(oracle.CORPUS) if f.endswith('.cql') and f[:-4] not in left_out)
    return [os.path.join(oracle.CORPUS, name if name.endswith('.cql') else name + '.cql') for name in named]


def layouts(args):
    numbers = lambda text: [int(n) for n in text.split(',') if n]
    for place in filter(None, args.places.split(',')):
        for shards in numbers(args.shards):
            yield Layout(shards, place=place)
    for replicas in numbers(args.rings):
        if replicas:
            yield Layout(2, 3, replicas, 'half')


def is_recorded(report, path):
    """Are Cassandra's own deviations known for the text of a file? That they are not is a difference."""
    if not report.deviations.covers(path):
        report.differ(path, 0, 'record', '', 'no deviations of Cassandra are recorded for this text: forms.py record --host HOST FILE')
        return False
    return True


def tell_reads(running, report, path, share):
    if not is_recorded(report, path):
        return
    asking = Reads(report, Encoder(), share, running.servers if running.layout.ring > 1 else None)
    Told(running, Place(running), report, lambda server, s, i: asking.ask(server, s.path, s.steps[i], s.recorded[i])).tell(Story(path))


def tell_writes(running, report, path, share):
    if not is_recorded(report, path):
        return
    for writes in all_forms(report, Encoder(), running):
        if share.has(path.rpartition('/')[2], writes.name):
            Told(running, Place(running), report, writes=writes).tell(Story(path))


class Run:
    """The layouts, one after the other, each with the same files."""

    def __init__(self, args, report):
        self.args, self.report = args, report
        self.known = set().union(*map(oracle.known_differences, args.known))
        self.known_of_writes = oracle.known_differences(os.path.join(HERE, 'known_bound.md'))
        self.known_of_files = oracle.known_differences(os.path.join(HERE, 'known.md'))
        self.known_of_rings = oracle.known_differences(os.path.join(HERE, 'known_ring.md'))

    def start(self, layout):
        args = self.args
        self.report.layout = str(layout)
        self.report.known = self.known | (self.known_of_files if layout.place != 'memory' else set())
        if args.what == 'writes':
            self.report.known |= self.known_of_writes
        if layout.ring > 1:
            self.report.known |= self.known_of_rings
        return Running(layout, Programs(args.node, args.nodetool, args.dir), args.ips.split(','), args.host)

    def on_each(self, tell):
        report = self.report
        for layout in layouts(self.args):
            running = self.start(layout)
            try:
                for path in files(self.args, layout):
                    started, before, differ = time.monotonic(), sum(report.asked.values()), len(report.found)
                    tell(running, report, path, Share(self.args.share, str(layout)))
                    print(f'{layout}: {os.path.basename(path)}: {sum(report.asked.values()) - before} forms, {len(report.found) - differ} differ, '
                          f'{time.monotonic() - started:.1f} s', flush=True)
            finally:
                running.stop()

    def functions(self):
        for layout in layouts(self.args):
            running, differ, started = self.start(layout), len(self.report.found), time.monotonic()
            try:
                Impure(running, Place(running), self.report, self.args.count).run(Share(self.args.share, str(layout)))
                print(f'{layout}: functions: {len(self.report.found) - differ} differ, {time.monotonic() - started:.1f} s', flush=True)
            finally:
                running.stop()


class Planting:
    """Each plant in turn; what differs without it does not count."""

    def __init__(self, args):
        self.args, self.deviations, self.plain = args, Deviations.load(), {}

    def run(self):
        missed = 0
        print(f"{'planted':<28}{'found by':>10}  first by, and what it is")
        wanted = [plant for plant in PLANTED if not self.args.files or name(plant) in self.args.files]
        for place, ring in sorted({(plant.place, plant.ring) for plant in wanted}):
            layout = Layout(2, 3, ring, place) if ring else Layout(2, place=place)
            running = Run(self.args, Report(self.deviations)).start(layout)
            try:
                for plant in wanted:
                    if (plant.place, plant.ring) == (place, ring):
                        missed += not self._one(running, plant)
            finally:
                running.stop()
        print(f'{len(wanted)} faults planted, {len(wanted) - missed} found')
        return 1 if missed else 0

    def _one(self, running, plant):
        key = (plant.part, plant.files, running.layout.place, running.layout.ring)
        if key not in self.plain:
            self.plain[key] = set(self._tell(running, plant).found)
        with between(plant()):
            report = self._tell(running, plant)
        found = [f for f in report.found if f not in self.plain[key]]
        first = f'{found[0][0]} {found[0][1]}' if found else ''
        print(f"{name(plant):<28}{len(found) or 'nothing':>10}  {first}: {plant.what}", flush=True)
        return bool(found)

    def _tell(self, running, plant):
        report, share = Report(self.deviations, quiet=True), Share(PLANTED_SHARE, 'planted')
        if plant.part == 'functions':
            Impure(running, Place(running), report, PLANTED_COUNT).run(Share(PLANTED_FUNCTIONS, 'planted'))
            return report
        for path in [os.path.join(oracle.CORPUS, f + '.cql') for f in plant.files]:
            if plant.part == 'reads':
                tell_reads(running, report, path, share)
            else:
                tell_writes(running, report, path, Share(1))
        return report


def record(args):
    deviations = Deviations.load() if os.path.exists(DEVIATIONS) else Deviations()
    running = Running(Layout(), host=args.host)
    report = Report(deviations, recording=True)
    for path in files(args, running.layout):
        started, before = time.monotonic(), sum(report.asked.values())
        deviations.begin(path)
        asking, story = Reads(report, Encoder(), Share(1)), Story(path)
        Told(running, Place(running), report, lambda server, s, i: asking.ask(server, s.path, s.steps[i], s.recorded[i]), compares=False).tell(story)
        for writes in all_forms(report, Encoder(), running):
            if writes.deviates:
                Told(running, Place(running), report, writes=writes).tell(story)
        deviations.save()
        print(f'{os.path.basename(path)}: {sum(report.asked.values()) - before} forms, {time.monotonic() - started:.1f} s', flush=True)
    report.summary()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['reads', 'writes', 'functions', 'planted', 'record'])
    parser.add_argument('--host')
    parser.add_argument('--node')
    parser.add_argument('--nodetool')
    parser.add_argument('--dir')
    parser.add_argument('--ips', default='')
    parser.add_argument('--shards', default='2')
    parser.add_argument('--places', default='memory')
    parser.add_argument('--rings', default='0')
    parser.add_argument('--share', type=int, default=1)
    parser.add_argument('--count', type=int, default=80)
    parser.add_argument('--without', default='')
    parser.add_argument('--known', action='append', default=[])
    parser.add_argument('--show', type=int, default=40)
    parser.add_argument('files', nargs='*')
    args = parser.parse_intermixed_args()
    # the nodes that were started stop with whoever ends this
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if args.what == 'record':
        return record(args)
    if args.what == 'planted':
        return Planting(args).run()
    report = Report(Deviations.load(), show=args.show)
    run = Run(args, report)
    dict(reads=lambda: run.on_each(tell_reads), writes=lambda: run.on_each(tell_writes), functions=run.functions)[args.what]()
    return 1 if report.summary() == 0 or report.found else 0


if __name__ == '__main__':
    sys.exit(main())
