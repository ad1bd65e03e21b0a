"""How much of Cassandra's CQL the corpus made run: lines of its statements, restrictions, selections, functions, conditions.

    coverage.py EXEC CACHE LIB               a table by package; exit code 1 below WANTED percent
    coverage.py EXEC CACHE LIB --missed [FILE...]    the files with the most lines missed, or the missed lines of FILE

EXEC is what JaCoCo's agent wrote, CACHE the folder with its jars (jacoco/), LIB that with Cassandra's.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from xml.etree import ElementTree

WANTED = 65.0  # percent
ROOT = 'org/apache/cassandra/cql3/'
PACKAGES = ('statements', 'restrictions', 'selection', 'functions', 'conditions')
# Source files of what these packages have to do with indexes, views, user functions and triggers.
LEFT_OUT = [
    'statements/schema/CreateIndexStatement.java', 'statements/schema/DropIndexStatement.java',
    'statements/schema/IndexAttributes.java', 'statements/schema/IndexTarget.java',
    'restrictions/IndexRestrictions.java', 'restrictions/CustomIndexExpression.java',
    'statements/schema/CreateViewStatement.java', 'statements/schema/AlterViewStatement.java', 'statements/schema/DropViewStatement.java',
    'statements/schema/CreateTriggerStatement.java', 'statements/schema/DropTriggerStatement.java',
    'statements/schema/CreateFunctionStatement.java', 'statements/schema/DropFunctionStatement.java',
    'statements/schema/CreateAggregateStatement.java', 'statements/schema/DropAggregateStatement.java',
    'functions/JavaBasedUDFunction.java', 'functions/JavaUDF.java', 'functions/UDAggregate.java', 'functions/UDFByteCodeVerifier.java',
    'functions/UDFContext.java', 'functions/UDFContextImpl.java', 'functions/UDFDataType.java', 'functions/UDFExecutorService.java',
    'functions/UDFunction.java', 'functions/UserFunction.java',
]
LEFT_OUT_FOLDERS = ['functions/types/']  # values as user functions see them


def counts(path):
    """Is a source file of what is measured?"""
    return path.startswith(PACKAGES) and path not in LEFT_OUT and not any(path.startswith(f) for f in LEFT_OUT_FOLDERS)


def report(recorded, cache, lib):
    """JaCoCo's XML report of the packages."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(glob.glob(os.path.join(lib, 'cassandra-all-*.jar'))[0]) as jar:
            for name in jar.namelist():
                if name.startswith(tuple(ROOT + p + '/' for p in PACKAGES)) and name.endswith('.class'):
                    jar.extract(name, folder)
        xml = os.path.join(folder, 'report.xml')
        cli = os.path.join(cache, 'jacoco', 'org.jacoco.cli-nodeps.jar')
        subprocess.run(['java', '-jar', cli, 'report', recorded, '--classfiles', folder, '--xml', xml, '--quiet'], check=True)
        with open(xml, encoding='utf-8') as f:
            return re.sub(r'<!DOCTYPE[^>]*>', '', f.read())


def files(xml):
    """(path, lines missed, lines covered) of every source file that counts; the missed lines are numbers."""
    for package in ElementTree.fromstring(xml).findall('package'):
        for source in package.findall('sourcefile'):
            path = package.get('name')[len(ROOT):] + '/' + source.get('name')
            lines = source.findall('line')
            missed = [int(line.get('nr')) for line in lines if line.get('ci') == '0']
            if counts(path):
                yield path, missed, len(lines) - len(missed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('exec')
    parser.add_argument('cache')
    parser.add_argument('lib')
    parser.add_argument('--missed', nargs='*')
    args = parser.parse_args()
    found = sorted(files(report(args.exec, args.cache, args.lib)))
    if args.missed:
        for path, missed, _ in found:
            if os.path.basename(path).removesuffix('.java') in args.missed:
                print(path, *missed)
        return 0
    if args.missed is not None:
        for path, missed, covered in sorted(found, key=lambda f: -len(f[1]))[:40]:
            print(f'{len(missed):5} missed {covered:5} covered  {path}')
        return 0
    total = [0, 0]
    print(f"{'package of org.apache.cassandra.cql3':<40}{'lines':>7}{'covered':>9}")
    for package in sorted({os.path.dirname(path) for path, _, _ in found}):
        missed = sum(len(m) for path, m, _ in found if os.path.dirname(path) == package)
        covered = sum(c for path, _, c in found if os.path.dirname(path) == package)
        total = [total[0] + missed, total[1] + covered]
        print(f'{package:<40}{missed + covered:>7}{100 * covered / max(1, missed + covered):>8.1f}%')
    share = 100 * total[1] / max(1, sum(total))
    print(f"{'all':<40}{sum(total):>7}{share:>8.1f}%   at least {WANTED} % wanted; left out: {len(LEFT_OUT)} files, {', '.join(LEFT_OUT_FOLDERS)}")
    return 0 if share >= WANTED else 1


if __name__ == '__main__':
    sys.exit(main())
