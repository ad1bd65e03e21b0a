"""Drives the unmodified cqlsh (PyPI) through a script and compares what it prints, line for line.

    run.py CQLSH HOST[:PORT]                   with what Cassandra 5.0.9 printed (golden.txt)
    run.py CQLSH HOST[:PORT] HOST[:PORT]       with what another server prints
    run.py CQLSH HOST[:PORT] --record          writes golden.txt: HOST is a fresh Cassandra then

Identifiers, times, rates, addresses and tokens of the node are replaced by names before the comparison. The files that
the script writes (CAPTURE, COPY TO, rows that COPY FROM refused) are compared too. Exit code 1 when anything differs or
when a COPY lost rows.
"""

import argparse
import difflib
import hashlib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, 'golden.txt')
TIMEOUT_SECONDS = 600
# Rows of the CSV that is copied in and out, and of deleted rows in one partition.
ROWS, GRAVES = 100_000, 1_500
RULES = [
    # a table's id; the values that the script writes stay
    (r'\bid = [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'id = <uuid>'),
    (r'Connected to .* at .*', 'Connected to <cluster>'),
    (r'\b127\.0\.0\.\d+(:\d+)?', '<address>'),
    (r'(Rate|Avg\. rate):\s+\d+ rows/s', r'\1: <rate>'),
    (r'in \d[\w ,.]*seconds', 'in <seconds>'),
    (r'from (\d+) files in .*', r'from \1 files in <seconds>'),
    (r'Using \d+ child processes', 'Using <n> child processes'),
    (r'/[^ \']*/([a-z]+\.(csv|cql|txt|err))', r'<\1>'),
    (r'^Cluster: .*', 'Cluster: <cluster>'),
    (r'\b(863\d\d|86400)\b', '<ttl>'),
]
FILES = ['captured.txt', 'types.csv', 'events.csv', 'bad.err']


def server(text):
    host, _, port = text.partition(':')
    return host, port or '9042'


def normal(text):
    lines = []
    for line in re.split(r'[\r\n]', text):
        for pattern, name in RULES:
            line = re.sub(pattern, name, line)
        if line.startswith('Processed:') or not line.strip():
            continue  # progress of COPY comes in as many lines as it likes
        lines.append(line.rstrip())
    return lines


def write_csv(path):
    """Awkward text now and then: commas, quotes, non-ASCII, nothing. No line breaks: cqlsh cuts its chunks there."""
    oddities = ['plain', '"with, comma"', '"with ""quotes"""', 'caf\u00e9', '']
    with open(path, 'w', encoding='utf-8') as f:
        for n in range(ROWS):
            f.write(f'{n % 1000},{n},{oddities[n % len(oddities)]},{n * 0.5},{"True" if n % 3 else "False"}\n')


def write_inputs(folder):
    def path(name):
        return os.path.join(folder, name)

    write_csv(path('in.csv'))
    with open(path('graves.csv'), 'w', encoding='utf-8') as f:
        f.writelines(f'1,{c},-\n' for c in range(GRAVES))
    with open(path('bad.csv'), 'w', encoding='utf-8') as f:
        f.write('k,v,w\n100,good,1\nx,bad key,2\n101,bad number,y\n102,"good, too",3\n103,too few\n')
    for name in ('script.cql', 'sourced.cql'):
        with open(os.path.join(HERE, name), encoding='utf-8') as source, open(path(name), 'w', encoding='utf-8') as f:
            f.write(source.read().replace('@DIR@', folder))


def contents(path):
    """The lines of a file; those of tables in order, since a COPY of several ranges writes them as they come."""
    if not os.path.exists(path):
        return ['(no such file)']
    with open(path, encoding='utf-8', newline='') as f:
        lines = normal(f.read())
    return lines if path.endswith('.txt') else sorted(lines)


def traced(cqlsh, host, port):
    """What is wrong with TRACING ON; what a trace says beside its frame is each server's own."""
    statements = 'TRACING ON; SELECT cluster_name FROM system.local; TRACING OFF; SELECT key FROM system.local;'
    command = [cqlsh, host, port, '--no-color', '--request-timeout=60', '--connect-timeout=30', '-e', statements]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_SECONDS,
                          env=dict(os.environ, TZ='UTC', LC_ALL='C.UTF-8', PYTHONWARNINGS='ignore'))
    wanted = ['Tracing session: ', 'Execute CQL3 query', 'Parsing SELECT cluster_name', 'Request complete']
    problems = [f'TRACING ON shows no "{w}"' for w in wanted if done.stdout.count(w) != 1]
    return problems + ([f'TRACING ON: {done.stdout}'] if problems or done.returncode else [])


def run(cqlsh, host, port):
    """What cqlsh printed and wrote, and what is wrong whoever the server is."""
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(folder)
        command = [cqlsh, host, port, '--no-color', '--request-timeout=60', '--connect-timeout=30', '-f', os.path.join(folder, 'script.cql')]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_SECONDS, cwd=folder,
                              env=dict(os.environ, TZ='UTC', LC_ALL='C.UTF-8', PYTHONWARNINGS='ignore', PYTHONUNBUFFERED='1'))
        lines = normal(done.stdout)
        for name in FILES:
            lines += [f'== {name}'] + contents(os.path.join(folder, name))
        problems = traced(cqlsh, host, port)
        target = os.path.join(folder, 'out.csv')
        if os.path.exists(target):
            with open(target, encoding='utf-8', newline='') as f:
                records = sorted(record for record in f.read().split('\r\n') if record)
            lines += ['== out.csv', f'{len(records)} records, sha256 {hashlib.sha256(chr(10).join(records).encode()).hexdigest()}']
            if len(records) != ROWS:
                problems.append(f'COPY TO wrote {len(records)} records, {ROWS} went in')
        else:
            problems.append('COPY TO wrote no file')
        return lines, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cqlsh', type=os.path.abspath)
    parser.add_argument('servers', nargs='+')
    parser.add_argument('--record', action='store_true')
    parser.add_argument('--print', action='store_true')
    args = parser.parse_args()
    results = []
    failed = False
    for text in args.servers[:2]:
        lines, problems = run(args.cqlsh, *server(text))
        results.append((text, lines))
        failed = failed or bool(problems)
        print(f'{text}: {len(lines)} lines' + ''.join(f'; {p}' for p in problems), flush=True)
        if args.print:
            print('\n'.join('    ' + line for line in lines))
    if args.record:
        with open(GOLDEN, 'w', encoding='utf-8') as f:
            f.writelines(line + '\n' for line in results[0][1])
        return 1 if failed else 0
    if len(results) == 1:
        with open(GOLDEN, encoding='utf-8') as f:
            results.append(('golden.txt', f.read().split('\n')[:-1]))
    (our_name, ours), (their_name, theirs) = results
    difference = list(difflib.unified_diff(theirs, ours, their_name, our_name, lineterm='', n=1))
    print('\n'.join(difference[:400]))
    print(f'{len(theirs)} lines compared, ' + ('different' if difference else 'the same'))
    return 1 if failed or difference else 0


if __name__ == '__main__':
    sys.exit(main())
