"""A file of the corpus as a story on the nodes of a layout: its statements in their order, and what is asked beside."""

import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))

import oracle  # noqa: E402
from corpus import parse  # noqa: E402
from mistakes import Spoiled, is_mistake  # noqa: E402

MODIFICATIONS = {'INSERT', 'UPDATE', 'DELETE', 'BEGIN'}
VERB = re.compile(r'(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)', re.DOTALL)


def verb(step):
    """The first word of a statement; `BEGIN` of a BATCH message too."""
    if step.batch is not None:
        return 'BEGIN'
    match = VERB.match(step.cql)
    return match[1].upper() if match else ''


def is_modification(step):
    is_done = 'prepare' not in step.directives or 'bind' in step.directives
    return is_done and verb(step) in MODIFICATIONS


def is_read(step):
    return verb(step) == 'SELECT'


def untold_use(answers):
    """Answers without the warning of prepared statements and USE, which a connection hears once: the first is another one here."""
    out = []
    for answer in answers:
        left = [w for w in answer.get('warnings', []) if not w.startswith('`USE <keyspace>`')]
        out.append({k: v for k, v in dict(answer, warnings=left).items() if k != 'warnings' or left})
    return out


class Story:
    """The steps of a file, with Cassandra's answers."""

    def __init__(self, path):
        self.path, self.steps = path, parse(path)
        with open(oracle.golden_path(path), encoding='ascii') as f:
            recorded = json.load(f)
        if [e['cql'] for e in recorded] != [s.title() for s in self.steps]:
            raise RuntimeError(f'{path}: golden answers are of another text of this file; record them anew')
        self.recorded = [e['answers'] for e in recorded]
        self.runs = self._runs()

    def _runs(self):
        """For each step: how many modifications there are between the reads before and behind it."""
        runs, at = [0] * len(self.steps), []
        for i, step in enumerate(self.steps):
            if is_modification(step):
                at.append(i)
            if is_read(step) or i == len(self.steps) - 1:
                for j in at:
                    runs[j] = len(at)
                at = []
        return runs


def follow(server, others, name):
    """The other nodes' connections use the keyspace that the first one's uses."""
    for other in others:
        if other is not server and other.keyspace != name:
            other.close()
            other.keyspace = name


class Told:
    """Tells a story: `on_read` after each SELECT, modifications as `writes` has them."""

    def __init__(self, running, place, report, on_read=None, writes=None, compares=True):
        self.running, self.place, self.report = running, place, report
        self.on_read, self.writes, self.compares = on_read, writes, compares

    def tell(self, story):
        server = self.running.servers[0]
        for one in self.running.servers:
            one.close()
        server.clean()
        spoiled, generated = Spoiled(), os.path.basename(story.path).startswith('gen_')
        if self.writes:
            self.writes.begin(story)
        for i, step in enumerate(story.steps):
            if spoiled.skips(step):
                continue
            recorded = story.recorded[i]
            if self.writes and not is_modification(step):
                self.writes.settled(server)
            if is_read(step):
                self.place.before_reads()
            server.wanted = next((a['event'] for a in recorded if a['kind'] == 'event'), None)
            ours = self._answers(server, story, i)
            follow(server, self.running.servers, server.keyspace)
            if is_modification(step):
                self.place.wrote(story.runs[i])
            if ours is not None and self._differs(story, step, ours, recorded, spoiled, generated):
                continue
            if is_read(step) and self.on_read:
                self.on_read(server, story, i)
        server.clean()

    def _answers(self, server, story, at):
        """What is to be compared to Cassandra's answers; None if nothing."""
        step = story.steps[at]
        if self.writes and is_modification(step):
            return self.writes.modify(server, story, at)
        if not is_read(step):
            return server.run(step)
        if self.writes and self.writes.hides(step):
            self.report.leave_out(f'{self.writes.name}: times')
            return None
        return server.run(step)

    def _differs(self, story, step, ours, recorded, spoiled, generated):
        """Is the answer to the statement as it stands another one than Cassandra's?"""
        ours, recorded = untold_use(ours), untold_use(recorded)
        if not self.compares or oracle.agree(ours, recorded, oracle.fails(step)):
            return False
        if generated and any(map(is_mistake, recorded)):
            spoiled.note(step)
            return True
        merged = [dict(rows=[row for a in answers for row in a.get('rows', sum(a.get('pages', []), []))]) for answers in (recorded, ours)]
        kinds = [' '.join(a.get('code', a['kind']) for a in answers) for answers in (ours, recorded)]
        form = f'after {self.writes.name}' if self.writes else 'as it stands'
        self.report.differ(story.path, step.line, form, step.title(), f'{kinds[0]}; Cassandra: {kinds[1]}', *merged)
        return True
