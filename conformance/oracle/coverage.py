"""How much of Cassandra's CQL and of its reads the corpus made run, in lines of their packages.

    coverage.py EXEC CACHE LIB                       a table by package; exit code 1 where less than wanted was run
    coverage.py EXEC CACHE LIB --all                 the same, of all that cover.py runs
    coverage.py EXEC CACHE LIB --missed [FILE...]    the files with the most lines missed, or the missed lines of FILE by method
    coverage.py EXEC CACHE LIB --write docs/coverage.md    the table, and by class what was not run, with the reason

EXEC is what JaCoCo's agent wrote, CACHE the folder with its jars (jacoco/), LIB that with Cassandra's.
"""

import argparse
import bisect
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from xml.etree import ElementTree

from uncovered import KINDS, REASONS

ROOT = 'org/apache/cassandra/'
# What is measured together: packages below ROOT, and how many percent of their lines are wanted of a server of defaults alone, and
# of all that cover.py runs.
GROUPS = {
    'CQL': ((82.0, 88.0), ('cql3/statements', 'cql3/restrictions', 'cql3/selection', 'cql3/functions', 'cql3/conditions')),
    'reads': ((59.0, 75.0), ('db/filter', 'db/aggregation', 'service/pager')),
}
# Source files of what these packages have to do with indexes, views, user functions and triggers.
LEFT_OUT = [
    'cql3/statements/schema/CreateIndexStatement.java', 'cql3/statements/schema/DropIndexStatement.java',
    'cql3/statements/schema/IndexAttributes.java', 'cql3/statements/schema/IndexTarget.java',
    'cql3/restrictions/IndexRestrictions.java', 'cql3/restrictions/CustomIndexExpression.java',
    'cql3/statements/schema/CreateViewStatement.java', 'cql3/statements/schema/AlterViewStatement.java',
    'cql3/statements/schema/DropViewStatement.java',
    'cql3/statements/schema/CreateTriggerStatement.java', 'cql3/statements/schema/DropTriggerStatement.java',
    'cql3/statements/schema/CreateFunctionStatement.java', 'cql3/statements/schema/DropFunctionStatement.java',
    'cql3/statements/schema/CreateAggregateStatement.java', 'cql3/statements/schema/DropAggregateStatement.java',
    'cql3/functions/JavaBasedUDFunction.java', 'cql3/functions/JavaUDF.java', 'cql3/functions/UDAggregate.java',
    'cql3/functions/UDFByteCodeVerifier.java', 'cql3/functions/UDFContext.java', 'cql3/functions/UDFContextImpl.java',
    'cql3/functions/UDFDataType.java', 'cql3/functions/UDFExecutorService.java', 'cql3/functions/UDFunction.java',
    'cql3/functions/UserFunction.java',
]
LEFT_OUT_FOLDERS = ['cql3/functions/types/']  # values as user functions see them
FEW = 4  # so many missed lines of a class are not worth a reason of their own


def group_of(path):
    """What a source file is measured with, if it is."""
    if path in LEFT_OUT or any(path.startswith(f) for f in LEFT_OUT_FOLDERS):
        return None
    return next((name for name, (_, packages) in GROUPS.items() if path.startswith(tuple(p + '/' for p in packages))), None)


def counts(path):
    """Is a source file of what is measured?"""
    return group_of(path) is not None


def report(recorded, cache, lib):
    """JaCoCo's XML report of the packages."""
    wanted = tuple(ROOT + p + '/' for _, packages in GROUPS.values() for p in packages)
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(glob.glob(os.path.join(lib, 'cassandra-all-*.jar'))[0]) as jar:
            for name in jar.namelist():
                if name.startswith(wanted) and name.endswith('.class'):
                    jar.extract(name, folder)
        xml = os.path.join(folder, 'report.xml')
        cli = os.path.join(cache, 'jacoco', 'org.jacoco.cli-nodeps.jar')
        subprocess.run(['java', '-jar', cli, 'report', recorded, '--classfiles', folder, '--xml', xml, '--quiet'], check=True)
        with open(xml, encoding='utf-8') as f:
            return re.sub(r'<!DOCTYPE[^>]*>', '', f.read())


class Source:
    """A source file: how many of its lines were run, and in which methods the others are."""

    def __init__(self, path, lines, methods):
        self.path, self.group = path, group_of(path)
        self.missed = [int(line.get('nr')) for line in lines if line.get('ci') == '0']
        self.covered = len(lines) - len(self.missed)
        self.starts = sorted(methods)

    def by_method(self):
        """The missed lines by (class, method)."""
        found = collections.defaultdict(list)
        for line in self.missed:
            at = max(0, bisect.bisect_right(self.starts, (line, '\uffff', '')) - 1)
            found[self.starts[at][1:] if self.starts else ('', '')].append(line)
        return found


def sources(xml):
    """Every source file that counts."""
    for package in ElementTree.fromstring(xml).findall('package'):
        methods = collections.defaultdict(list)
        for kind in package.findall('class'):
            owner = kind.get('name').rsplit('/', 1)[1]
            for method in kind.findall('method'):
                methods[kind.get('sourcefilename')].append((int(method.get('line') or 0), owner, method.get('name')))
        for source in package.findall('sourcefile'):
            path = package.get('name')[len(ROOT):] + '/' + source.get('name')
            if counts(path):
                yield Source(path, source.findall('line'), methods[source.get('name')])


def show_missed(found, names):
    """The files with the most missed lines, or the missed lines of some."""
    if not names:
        for source in sorted(found, key=lambda s: -len(s.missed))[:80]:
            print(f'{len(source.missed):5} missed {source.covered:5} covered  {source.path}')
    for source in found:
        if os.path.basename(source.path).removesuffix('.java') in names:
            print(source.path)
            for (owner, method), lines in source.by_method().items():
                print(f'    {owner}.{method}', *lines)


def share(some):
    """(lines, percent that were run) of source files."""
    covered, missed = sum(s.covered for s in some), sum(len(s.missed) for s in some)
    return covered + missed, 100 * covered / max(1, covered + missed)


def table(found, alone):
    """The figures by package, and whether each group has what is wanted of it."""
    lines, enough = [f"{'package of org.apache.cassandra':<40}{'lines':>7}{'covered':>9}"], True
    for name, (wants, _) in GROUPS.items():
        wanted = wants[0] if alone else wants[1]
        mine = [s for s in found if s.group == name]
        for package in sorted({os.path.dirname(s.path) for s in mine}):
            total, percent = share([s for s in mine if os.path.dirname(s.path) == package])
            lines.append(f'{package:<40}{total:>7}{percent:>8.1f}%')
        total, percent = share(mine)
        lines.append(f"{'all of ' + name:<40}{total:>7}{percent:>8.1f}%   at least {wanted} % wanted")
        enough = enough and percent >= wanted
    lines.append(f"left out: {len(LEFT_OUT)} files of indexes, views, triggers and user functions, {', '.join(LEFT_OUT_FOLDERS)}")
    return '\n'.join(lines), enough


def reasons(source):
    """How many of the missed lines of a file are missed for which reason."""
    found = collections.Counter()
    own = REASONS.get(source.path.removesuffix('.java'), '')
    for (owner, method), lines in source.by_method().items():
        kind = next((why for why, pattern in KINDS.items() if re.search(pattern, f'{owner}.{method}')), own)
        found[kind] += len(lines)
    return found


def page(found):
    """The paper: figures, and what was not run by class."""
    yield '# How much of Cassandra the corpus runs\n'
    yield 'Lines of Cassandra 5.0.9 that the statements of `conformance/` ran, counted by JaCoCo. Written by'
    yield '`conformance/oracle/coverage.py --write docs/coverage.md`; the reasons are in `conformance/oracle/uncovered.py`.\n'
    yield 'The runs are those of `conformance/oracle/cover.py`: a server of defaults, one where one logs in and masks are allowed, one with'
    yield 'the thresholds of `conformance/guardrails/`, and reads through one node of two. A server of defaults alone has less: messages of'
    yield 'nodes, logins, masks and guardrails are not run there.\n'
    yield '```\n' + table(found, alone=False)[0] + '\n```\n'
    yield '## What was not run\n'
    total = collections.Counter()
    for source in found:
        total.update(reasons(source))
    yield '| lines | why |\n|---:|---|'
    for why in KINDS:
        yield f'| {total[why]} | {why} |'
    yield f'| {sum(total.values()) - sum(total[why] for why in KINDS)} | by class, below |\n'
    yield f'By class, where more than {FEW} lines were not run:\n'
    yield '| class | lines | not run | of these, why |\n|---|---:|---:|---|'
    for source in found:
        if len(source.missed) > FEW:
            why = '; '.join(f'{n}: {why or "not looked into"}' for why, n in reasons(source).most_common())
            yield f"| `{source.path.removesuffix('.java')}` | {source.covered + len(source.missed)} | {len(source.missed)} | {why} |"
    few = [s for s in found if 0 < len(s.missed) <= FEW]
    yield f'\nOf {len(few)} other classes {sum(len(s.missed) for s in few)} lines were not run; of {sum(not s.missed for s in found)} none.'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('exec')
    parser.add_argument('cache')
    parser.add_argument('lib')
    parser.add_argument('--missed', nargs='*')
    parser.add_argument('--write', metavar='FILE')
    parser.add_argument('--all', action='store_true')
    args = parser.parse_args()
    found = sorted(sources(report(args.exec, args.cache, args.lib)), key=lambda s: s.path)
    if args.missed is not None:
        show_missed(found, args.missed)
        return 0
    if args.write:
        with open(args.write, 'w', encoding='utf-8') as f:
            f.write('\n'.join(page(found)) + '\n')
    text, enough = table(found, alone=not args.all and not args.write)
    print(text)
    return 0 if enough else 1


if __name__ == '__main__':
    sys.exit(main())
