"""Half reads, half updates on one server beside flushes and compactions, on a time axis; or the figures of such runs.

    run.py measure NAME HOST PORT PID DATA OUT.json [--rows N] [--seconds N] [--threads N] [--rate N] [--log FILE] [--nodetool PATH] [--echo FILE]
    run.py report OUT.json [OUT.json]

`measure` loads rows of 1 KB, then lets YCSB read and update whole rows for some time. Every tenth of a second it notes what the process
had the device read and write (/proc/PID/io) and what the device did (/proc/diskstats). Once a second it takes the files of SSTables out
of the page cache, so that only the server's own cache counts. When flushes and compactions ran is taken from the server: Cassandra's
system.log (--log), Helenus's own report (--nodetool, `iostats`).
"""

import argparse
import bisect
import datetime
import glob
import json
import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(HERE, '..', '..', '.cache', 'bench', 'ycsb')
WINDOW = 100       # ms
SKIP = 5           # seconds at the beginning that do not count
KEPT = 60          # seconds that Helenus keeps of its report
COLUMNS = 100      # of a plot
LEVELS = ' .:-=+*#%@'
QUANTILES = ((0.5, 'p50'), (0.99, 'p99'), (0.999, 'p99.9'), (0.9999, 'p99.99'))


def process_io(pid):
    fields = dict(line.split(': ') for line in open(f'/proc/{pid}/io'))
    return int(fields['read_bytes']), int(fields['write_bytes']), int(fields['cancelled_write_bytes'])


def device_of(path):
    number = os.stat(path).st_dev
    return f'{os.major(number)}', f'{os.minor(number)}'


def device_io(device):
    """Reads, bytes read, writes, bytes written, in flight, discards, bytes discarded, ms spent reading, ms writing."""
    for line in open('/proc/diskstats'):
        f = line.split()
        if (f[0], f[1]) == device:
            return [int(f[3]), int(f[5]) * 512, int(f[7]), int(f[9]) * 512, int(f[11]),
                    int(f[14]) if len(f) > 14 else 0, int(f[16]) * 512 if len(f) > 16 else 0, int(f[6]), int(f[10])]
    return [0] * 9


class Sampler(threading.Thread):
    """Notes counters every window, and empties the page cache of SSTables every second."""

    def __init__(self, pid, data):
        super().__init__(daemon=True)
        self.pid, self.data, self.samples, self.over = pid, data, [], threading.Event()
        self.device = device_of(data)

    def run(self):
        turn = 0
        while not self.over.wait(max(0.0, WINDOW / 1000 - time.time() % (WINDOW / 1000))):
            self.samples.append([int(time.time() * 1000), *process_io(self.pid), *device_io(self.device)])
            turn += 1
            if turn % 10 == 0:
                self.evict()

    def evict(self):
        for name in glob.glob(os.path.join(self.data, '**', '*.db'), recursive=True):
            if '-Data.db' in name or '-Index.db' in name:
                try:
                    fd = os.open(name, os.O_RDONLY)
                except OSError:
                    continue
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)


class Reporter(threading.Thread):
    """Gathers Helenus's own report before its windows are used again."""

    def __init__(self, nodetool, data):
        super().__init__(daemon=True)
        self.command, self.reports, self.over = nodetool.split() + ['--data-dir', data], [], threading.Event()

    def once(self):
        done = subprocess.run(self.command + ['iostats', '-F', 'json', '--windows'], stdout=subprocess.PIPE, text=True, check=True)
        self.reports.append(json.loads(done.stdout))

    def run(self):
        while not self.over.wait(KEPT * 0.8):
            self.once()


def ycsb(mode, args, properties):
    classpath = os.path.join(BUILT, 'classes') + ':' + os.path.join(BUILT, 'lib', '*')
    command = ['java', '-Xmx1g', '-XX:+UseSerialGC', '-cp', classpath, 'site.ycsb.Client', mode, '-db', 'helenus.CqlClient',
               '-threads', str(args.threads)]
    if mode == '-t' and args.rate:
        command += ['-target', str(args.rate)]
    properties = dict(properties, workload='site.ycsb.workloads.CoreWorkload', host=args.host, port=args.port, recordcount=args.rows)
    for key, val in properties.items():
        command += ['-p', f'{key}={val}']
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if out.returncode:
        sys.stderr.write(out.stderr[-4000:])
        raise SystemExit(f'YCSB ended with {out.returncode}')
    failed = re.findall(r'\[(\w+)\], Return=(?!OK)(\w+), (\d+)', out.stdout)
    return out.stdout, failed


def measure(args):
    print(f'{args.name}: loading {args.rows} rows', flush=True)
    ycsb('-load', args, {'measurementtype': 'hdrhistogram'})
    raw = args.out + '.raw'
    sampler = Sampler(args.pid, args.data)
    reporter = Reporter(args.nodetool, args.data) if args.nodetool else None
    print(f'{args.name}: {args.threads} clients for {args.seconds} s', flush=True)
    sampler.start()
    if reporter:
        reporter.start()
    text, failed = ycsb('-t', args, {
        'operationcount': 2**31 - 1, 'maxexecutiontime': args.seconds, 'readproportion': 0.5, 'updateproportion': 0.5,
        'requestdistribution': 'uniform', 'writeallfields': 'true',
        'measurementtype': 'raw', 'measurement.raw.output_file': raw, 'measurement.raw.no_summary': 'true'})
    sampler.over.set()
    sampler.join()
    result = dict(name=args.name, rows=args.rows, seconds=args.seconds, threads=args.threads, failed=failed, samples=sampler.samples)
    if reporter:
        reporter.over.set()
        reporter.join()
        reporter.once()
        result['flushes'], result['compactions'] = of_reports(reporter.reports)
        result['iostats'] = reporter.reports[-1]
        shown = subprocess.run(reporter.command + ['iostats'], stdout=subprocess.PIPE, text=True, check=True)
        result['shown'] = shown.stdout
    else:
        result['flushes'], result['compactions'] = of_log(args.log)
    result['operations'] = of_raw(raw)
    os.remove(raw)
    result['echo'] = of_echo(args.echo)
    with open(args.out, 'w', encoding='ascii') as f:
        json.dump(result, f)


def of_raw(path):
    """[kind, ms, us] of each operation."""
    out = []
    for line in open(path, encoding='ascii'):
        parts = line.rstrip().split(',')
        if len(parts) == 3 and parts[0] in ('READ', 'UPDATE'):
            out.append((parts[0][0], int(parts[1]), int(parts[2])))
    return out


def of_echo(path):
    if not path or not os.path.exists(path):
        return []
    lines = (line.split(',') for line in open(path, encoding='ascii') if line.endswith('\n'))
    return [(int(ms), int(us)) for ms, us in lines]


def of_reports(reports):
    """Spans in ms in which a flush or a compaction did something to the disk, from Helenus's windows."""
    busy = {'flush': set(), 'compaction': set()}
    for report in reports:
        for at, window in enumerate(report['windows']):
            for flow in window['flows']:
                if flow['class'] in busy and flow['operation'] in ('read', 'write', 'write_back', 'sync'):
                    busy[flow['class']].add((report['starts_at_ms'] + at * report['window_ms']) // WINDOW)
    return [spans(busy[kind]) for kind in ('flush', 'compaction')]


def spans(windows, gap=5):
    """Neighbouring windows together; a pace may leave some between two steps of one flush."""
    out = []
    for window in sorted(windows):
        if out and window * WINDOW - out[-1][1] <= gap * WINDOW:
            out[-1][1] = (window + 1) * WINDOW
        else:
            out.append([window * WINDOW, (window + 1) * WINDOW])
    return out


def of_log(path):
    """The same from Cassandra's log: flushes from when they are queued to when they are complete."""
    def ms(text):
        return int(datetime.datetime.strptime(text, '%Y-%m-%d %H:%M:%S,%f').timestamp() * 1000)
    flushes, compactions, begun = [], [], None
    for line in open(path, encoding='utf-8', errors='replace'):
        stamp = re.search(r'(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d,\d{3})', line)
        if not stamp or 'usertable' not in line:
            continue
        at = ms(f'{stamp.group(1)} {stamp.group(2)}')
        if 'Enqueuing flush of' in line or 'Writing Memtable' in line:
            begun = begun or at
        elif 'Completed flushing' in line:
            flushes.append([begun or at - 500, at])
            begun = None
        else:
            took = re.search(r'Compacted \(.* in ([\d,]+)ms', line)
            if took:
                compactions.append([at - int(took.group(1).replace(',', '')), at])
    return flushes, compactions


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, int(len(ordered) * q))] if ordered else 0


def within(intervals, window):
    return any(a < (window + 1) * WINDOW and b > window * WINDOW for a, b in intervals)


def size(n):
    for unit in ('B', 'KiB', 'MiB', 'GiB'):
        if n < 1024 or unit == 'GiB':
            return f'{n:.1f} {unit}'
        n /= 1024


def line(name, values, unit):
    """A row of a plot: the largest value is the last level."""
    top = max(values, default=0)
    step = max(1, -(-len(values) // COLUMNS))
    cells = [max(values[i:i + step]) for i in range(0, len(values), step)]
    art = ''.join(LEVELS[round(v / top * (len(LEVELS) - 1))] if top else ' ' for v in cells)
    return f'  {name:<16}|{art}| {unit(top)} at most'


def report_one(run):
    ops = run['operations']
    start = min(ms for _, ms, _ in ops)
    first, last = (start + SKIP * 1000) // WINDOW, max(ms for _, ms, _ in ops) // WINDOW
    samples = [s for s in run['samples'] if first * WINDOW <= s[0] <= last * WINDOW]
    seconds = (samples[-1][0] - samples[0][0]) / 1000
    print(f"\n{run['name']}: {run['rows']} rows, {run['threads']} clients, {seconds:.0f} s, "
          f"{sum(1 for o in ops if first <= o[1] // WINDOW < last) / seconds:.0f} operations/s, failed: {run['failed'] or 'none'}")
    delta = [b - a for a, b in zip(samples[0][1:], samples[-1][1:])]
    steps = [[b[i] - a[i] for i in range(1, 13)] for a, b in zip(samples, samples[1:])]
    device = dict(reads=(delta[3], delta[4], 4), writes=(delta[5], delta[6], 6), discards=(delta[8], delta[9], 9))
    count, volume = (sum(v[i] for v in device.values()) or 1 for i in (0, 1))
    print(f"  {'device':<10}{'count':>10}{'share':>9}{'volume':>12}{'share':>9}{'mean size':>12}{'mean/s':>12}{'peak/s (100 ms)':>17}")
    for name, (n, b, at) in device.items():
        peak = max((s[at] for s in steps), default=0) * (1000 / WINDOW)
        print(f'  {name:<10}{n:>10}{n / count:>9.2%}{size(b):>12}{b / volume:>9.2%}{size(b / n if n else 0):>12}{size(b / seconds):>12}{size(peak):>17}')
    depth = [s[8] for s in samples]
    wait = (delta[10] / delta[3] if delta[3] else 0, delta[11] / delta[5] if delta[5] else 0)
    print(f'  depth: {sum(depth) / len(depth):.1f} on average, {max(depth)} at most; mean latency: reads {wait[0]:.2f} ms, writes {wait[1]:.2f} ms')
    print(f'  process: read {size(delta[0])}, written {size(delta[1])}, cancelled {size(delta[2])}')
    reads, echo = {}, {}
    for kind, ms, us in ops:
        if kind == 'R':
            reads.setdefault(ms // WINDOW, []).append(us)
    for ms, us in run['echo']:
        echo.setdefault(ms // WINDOW, []).append(us)
    kinds = {'flush': [], 'compaction': [], 'quiet': [], 'all': []}
    windows = range(first, last)
    flushes, compactions = (sorted(i for i in run[k] if i[1] > first * WINDOW and i[0] < last * WINDOW) for k in ('flushes', 'compactions'))
    for window in windows:
        kind = 'flush' if within(flushes, window) else 'compaction' if within(compactions, window) else 'quiet'
        kinds[kind].append(window)
        kinds['all'].append(window)
    print(f'  {len(flushes)} flushes ({sum(b - a for a, b in flushes) / 1000:.1f} s), {len(compactions)} compactions ({sum(b - a for a, b in compactions) / 1000:.1f} s)')
    print(f"  {'reads in ms':<24}{'windows':>9}{'reads':>10}" + ''.join(f'{name:>9}' for _, name in QUANTILES) + f"{'max':>9}")
    tails = {}
    for kind, of in kinds.items():
        for name, source in ((kind, reads), (f'{kind}, echo', echo)):
            values = sorted(us for window in of for us in source.get(window, ()))
            if values:
                tails[name] = quantile(values, 0.999) / 1000, quantile(values, 0.9999) / 1000
                print(f'  {name:<24}{len(of):>9}{len(values):>10}' + ''.join(f'{quantile(values, q) / 1000:>9.2f}' for q, _ in QUANTILES) + f'{values[-1] / 1000:>9.2f}')
    for kind in ('flush', 'compaction'):
        if kind in tails and 'quiet' in tails:
            print(f"  p99.9 in {kind} windows is {tails[kind][0] / tails['quiet'][0]:.2f} times that of quiet ones")
        if f'{kind}, echo' in tails:
            print(f"  p99.99 in {kind} windows is {tails[kind][1] - tails[f'{kind}, echo'][1]:.1f} ms beyond the echo server's")
    print(f'  over time, {len(windows) * WINDOW / 1000:.0f} s from left to right; the worst of each column')
    times = [s[0] // WINDOW for s in samples[1:]]
    by_window = lambda at: [max((steps[i][at] for i in range(bisect.bisect_left(times, w), bisect.bisect_right(times, w))), default=0) * (1000 / WINDOW) for w in windows]
    print(line('reads', by_window(4), lambda n: size(n) + '/s'))
    print(line('writes', by_window(6), lambda n: size(n) + '/s'))
    print(line('depth', [max((samples[i][8] for i in range(bisect.bisect_left(times, w), bisect.bisect_right(times, w))), default=0) for w in windows], str))
    print(line('read latency', [max(reads.get(w, [0])) for w in windows], lambda us: f'{us / 1000:.1f} ms'))
    print(line('echo latency', [max(echo.get(w, [0])) for w in windows], lambda us: f'{us / 1000:.1f} ms'))
    print(line('flushes', [int(within(flushes, w)) for w in windows], lambda n: f'{n}'))
    print(line('compactions', [int(within(compactions, w)) for w in windows], lambda n: f'{n}'))
    if run.get('shown'):
        print(f"  what {run['name']} itself says (nodetool iostats):\n    " + '\n    '.join(run['shown'].splitlines()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    m = commands.add_parser('measure')
    for name, kind in (('name', str), ('host', str), ('port', int), ('pid', int), ('data', str), ('out', str)):
        m.add_argument(name, type=kind)
    m.add_argument('--rows', type=int, default=200000)
    m.add_argument('--seconds', type=int, default=120)
    m.add_argument('--threads', type=int, default=32)
    m.add_argument('--rate', type=int, default=0)
    m.add_argument('--log')
    m.add_argument('--nodetool')
    m.add_argument('--echo')
    r = commands.add_parser('report')
    r.add_argument('files', nargs='+')
    args = parser.parse_args()
    if args.command == 'measure':
        return measure(args)
    for file in args.files:
        with open(file, encoding='ascii') as f:
            report_one(json.load(f))
    return 0


if __name__ == '__main__':
    sys.exit(main())
