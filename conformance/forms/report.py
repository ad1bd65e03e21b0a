"""What was asked in which forms, and what differed: of Cassandra's answers, or from form to form."""

import collections
import difflib
import hashlib
import json
import os

from names import folded, unfolded

HERE = os.path.dirname(os.path.abspath(__file__))
DEVIATIONS = os.path.join(HERE, 'cassandra.json')


# An exception that nobody meant, also where it shows as a timeout, a failure or its own paging state refused: whatever is answered instead will do.
MISTAKES = {'0000', '000a', '1100', '1200', '1300', '1500'}
# Reasons for which a statement has no such form, whoever answers.
DRIVERS_OWN = {'nothing to bind', 'names of its own', 'values that no literal is'}


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def digest(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


class Deviations:
    """Where a form is answered otherwise than the statement as it stands, by Cassandra itself: an error that only pages meet, a form that it
    does not know, and what it does by mistake. By file, `line.number of its values` and deviation: the forms."""

    def __init__(self, known=None):
        self.known, self.by_form = known or {}, {}
        for name, entry in self.known.items():
            self.by_form[name] = {(place, form): deviation for place, found in entry['forms'].items() for deviation, forms in found.items() for form in unfolded(forms)}

    @classmethod
    def load(cls):
        with open(DEVIATIONS, encoding='ascii') as f:
            return cls(json.load(f))

    def covers(self, path):
        entry = self.known.get(stem(path))
        return entry is not None and entry['digest'] == digest(path)

    def of(self, path, place, form):
        return self.by_form.get(stem(path), {}).get((place, form))

    def begin(self, path):
        """Records a file anew."""
        self.known[stem(path)] = dict(digest=digest(path), forms={}, writes={})

    def note_write(self, path, form, line):
        """Something that follows from a modification in a form, or its own answer, is otherwise than as it stands."""
        lines = self.known[stem(path)]['writes'].setdefault(form, [])
        if line not in lines:
            lines.append(line)

    def has_write(self, path, form, line):
        return line in self.known.get(stem(path), {}).get('writes', {}).get(form, [])

    def note(self, path, place, form, deviation):
        self.known[stem(path)]['forms'].setdefault(place, {}).setdefault(deviation, []).append(form)

    def save(self):
        with open(DEVIATIONS, 'w', encoding='ascii') as f:
            files = [json.dumps(name) + ': {"digest": ' + json.dumps(entry['digest']) + ', "writes": ' + json.dumps(entry['writes']) + ', "forms": {\n'
                     + ',\n'.join(f'{json.dumps(place)}: {json.dumps({d: folded(unfolded(forms)) for d, forms in found.items()})}' for place, found in entry['forms'].items()) + '\n}}'
                     for name, entry in sorted(self.known.items())]
            f.write('{\n' + ',\n'.join(files) + '\n}\n')


class Report:
    """Counts and differences of a run."""

    def __init__(self, deviations, recording=False, show=40, quiet=False):
        self.deviations, self.recording, self.show, self.quiet = deviations, recording, show, quiet
        self.layout = ''
        self.asked, self.left_out, self.statements = collections.Counter(), collections.Counter(), set()
        self.found, self.as_cassandra, self.own = [], 0, 0
        self.known, self.met = set(), 0

    def count(self, title, form, deviation, asked, base, answer, recorded_as=None):
        """A form of a SELECT was asked: `deviation` says how its answer stands to that of the statement in the file."""
        path, _ = title
        place = f'{asked.step.line}.{asked.number}'
        self.asked[form] += 1
        self.statements.add((path, asked.step.line))
        if self.recording:
            if deviation:
                self.deviations.note(path, place, form, deviation)
            return
        theirs = self.deviations.of(path, place, recorded_as or form)
        if deviation == theirs:
            self.as_cassandra += deviation is not None
            return
        if theirs and theirs.split()[-1] in MISTAKES:
            self.own += 1
            return
        if theirs in ('rows', 'columns') and deviation is None:
            self.own += 1
            return
        said = f'{deviation or "as the statement in the file"}; Cassandra: {theirs or "as the statement in the file"}'
        self.differ(path, asked.step.line, f'{form} #{asked.number}', asked.step.title(), said, base, answer)

    def not_written(self, title, form, reason):
        """A form that a statement does not have."""
        path, asked = title
        self.left_out[f'{form}: {reason}'] += 1
        if reason not in DRIVERS_OWN:
            self.count(title, form, f'none: {reason}', asked, {}, {})
            self.asked[form] -= 1

    def wrote(self, path, step, form):
        """A modification was done in a form."""
        self.asked[form] += 1
        self.statements.add((path, step.line))

    def leave_out(self, reason):
        self.left_out[reason] += 1

    def differ(self, path, line, form, text, said, base=None, answer=None):
        where = f'{stem(path)}:{line}'
        if self.recording:
            self.deviations.note_write(path, form, line)
            return
        if self.deviations.has_write(path, form, line):
            self.as_cassandra += 1
            return
        if where in self.known:
            self.met += 1
            return
        self.found.append((where, form))
        if self.quiet or len(self.found) > self.show:
            return
        print(f'DIFFERENT {where} [{self.layout}] {form}: {text[:300]}')
        print(f'    {said}'[:400])
        left, right = ([json.dumps(row) for row in (a or {}).get('rows', [])] for a in (base, answer))
        for diff in list(difflib.unified_diff(left, right, 'the statement as it stands', 'in this form', lineterm='', n=1))[2:20]:
            print('    ' + diff[:300])

    def summary(self):
        forms = sum(self.asked.values())
        print(f'{len(self.statements)} statements compared in {forms} forms, {len(self.found)} differ, '
              f'{self.as_cassandra} deviate as they do with Cassandra, {self.own} agree where its own do not')
        reasons = ', '.join(f'{count} {reason}' for reason, count in self.left_out.most_common())
        print(f'left out: {reasons or "nothing"}')
        return forms
