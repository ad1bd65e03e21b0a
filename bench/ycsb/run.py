"""Runs YCSB against one server and keeps what it measured; or compares such runs.

    run.py measure NAME HOST PORT PID[,PID...] OUT.json [--records N] [--operations N] [--warm N] [--threads N]
                   [--workloads a,b,...] [--property NAME=VALUE]... [--loaded]
    run.py pairs OUT.json...              medians of runs of two systems that took turns, by cell and workload, and their ratios

Server CPU is utime + stime of the PIDs, all their threads (/proc/PID/stat), from before each workload until they are at rest after
it: no flush and no compaction is left. Beside it stands what neither they nor YCSB used. Memory is what is resident then.
A server that was just loaded runs each workload once before, with as many operations as --warm says, so that a JIT has compiled
what it will; nothing of that is kept.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(HERE, '..', '..', '.cache', 'bench', 'ycsb')
HZ = os.sysconf('SC_CLK_TCK')
OURS = 'Helenus'
OTHERS_MAX = 0.07  # of the machine's CPU; a run beside more is none
REST_SHARE = 0.1  # of a core, for each server: one that uses less for REST_SECONDS is at rest
REST_SECONDS = 2
REST_LIMIT = 600  # seconds
SCAN_SHARE = 20  # a scan reads some fifty rows: fewer operations of them

WORKLOADS = {  # shares of operations, key distribution
    'a': dict(read=0.5, update=0.5),
    'b': dict(read=0.95, update=0.05),
    'c': dict(read=1.0),
    'd': dict(read=0.95, insert=0.05, requestdistribution='latest'),
    'e': dict(scan=0.95, insert=0.05),
    'f': dict(read=0.5, readmodifywrite=0.5),
    'read95-update5': dict(read=0.95, update=0.05, requestdistribution='uniform'),
    'update50-read50': dict(read=0.5, update=0.5, requestdistribution='uniform'),
    'read65-update25-insert10': dict(read=0.65, update=0.25, insert=0.10),
    'insert90-read10': dict(insert=0.9, read=0.1),
}


def server_cpu(pids):
    total = 0
    for pid in pids.split(','):
        fields = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / HZ
    return total


def resident(pids):
    """MB."""
    total = 0
    for pid in pids.split(','):
        total += sum(int(line.split()[1]) for line in open(f'/proc/{pid}/status') if line.startswith('VmRSS:'))
    return total / 1024


def until_rest(pids):
    """Waits until the servers have done what the load left to them; those that never rest are told of."""
    limit = time.monotonic() + REST_LIMIT
    while time.monotonic() < limit:
        before = server_cpu(pids)
        time.sleep(REST_SECONDS)
        if server_cpu(pids) - before < REST_SHARE * REST_SECONDS * len(pids.split(',')):
            return
    print(f'the servers do not come to rest in {REST_LIMIT} s', file=sys.stderr)


def machine_cpu():
    """Seconds that the machine's cores were busy, and not for another machine."""
    user, nice, system, _, _, irq, softirq = map(int, open('/proc/stat').readline().split()[1:8])
    return (user + nice + system + irq + softirq) / HZ


def client_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ycsb(mode, args, properties):
    classpath = os.path.join(BUILT, 'classes') + ':' + os.path.join(BUILT, 'lib', '*')
    command = ['java', '-Xmx512m', '-XX:+UseSerialGC', '-cp', classpath, 'site.ycsb.Client', mode, '-db', 'helenus.CqlClient', '-s',
               '-threads', str(args.threads)]
    properties = dict(properties, workload='site.ycsb.workloads.CoreWorkload', host=args.host, port=args.port,
                      recordcount=args.records, measurementtype='hdrhistogram', **{'hdrhistogram.percentiles': '50,99,99.9'})
    properties.update(given.split('=', 1) for given in args.property)
    for key, val in properties.items():
        command += ['-p', f'{key}={val}']
    cpu, all_before, client, started = server_cpu(args.pid), machine_cpu(), client_cpu(), time.monotonic()
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if out.returncode:
        sys.stderr.write(out.stderr[-4000:])
        raise SystemExit(f'YCSB ended with {out.returncode}')
    until_rest(args.pid)
    cpu, wall = server_cpu(args.pid) - cpu, time.monotonic() - started
    others = machine_cpu() - all_before - cpu - (client_cpu() - client)
    return dict(parse(out.stdout, cpu, wall), other_cpu_share=others / (wall * os.cpu_count()), resident_mb=resident(args.pid))


def parse(text, cpu, wall):
    """The summary lines `[READ], 99thPercentileLatency(us), 123` as one object."""
    result, kinds = dict(wall=wall, server_cpu=cpu), {}
    for line in text.splitlines():
        if not line.startswith('['):
            continue
        kind, name, number = [p.strip() for p in line.split(',', 2)]
        kind = kind[1:-1]
        if kind == 'OVERALL' and name == 'Throughput(ops/sec)':
            result['throughput'] = float(number)
        elif kind == 'OVERALL' and name == 'RunTime(ms)':
            result['run_ms'] = float(number)
        elif kind not in ('OVERALL', 'CLEANUP') and not kind.startswith('TOTAL'):
            kinds.setdefault(kind, {})[name] = float(number)
    result['kinds'] = {}
    result['operations'] = result['failed'] = 0
    for kind, numbers in kinds.items():
        if kind.endswith('-FAILED') or kind == 'READ-MODIFY-WRITE':
            if kind == 'READ-MODIFY-WRITE':
                result['kinds'][kind] = latencies(numbers)
            continue
        result['kinds'][kind] = latencies(numbers)
        answered = sum(int(v) for k, v in numbers.items() if k.startswith('Return='))
        result['operations'] += answered
        result['failed'] += answered - int(numbers.get('Return=OK', 0))
    if result['operations']:
        result['cpu_us_per_operation'] = cpu * 1e6 / result['operations']
    return result


def latencies(numbers):
    out = dict(operations=int(numbers.get('Operations', 0)))
    for name, number in numbers.items():
        if 'PercentileLatency' in name:
            p = name.split('PercentileLatency')[0].rstrip('thsndr')
            out['p' + p.replace('.', '')] = number
    return out


def measure(args):
    results = dict(name=args.name, cell=args.cell, records=args.records, operations=args.operations, warm=args.warm, threads=args.threads, runs={})
    print(HEAD)
    if not args.loaded:
        print(f'{args.name}: loading {args.records} records', flush=True)
        results['runs']['load'] = ycsb('-load', args, {})
        show(results, 'load')
        for workload in args.workloads.split(',') if args.warm else ():
            run(args, workload, args.warm)
    for workload in args.workloads.split(','):
        results['runs'][workload] = run(args, workload, args.operations)
        show(results, workload)
    with open(args.out, 'w', encoding='ascii') as f:
        json.dump(results, f, indent=1)


def run(args, workload, operations):
    shares = dict(WORKLOADS[workload])
    distribution = shares.pop('requestdistribution', 'zipfian')
    properties = {f'{kind}proportion': share for kind, share in dict(dict.fromkeys(('read', 'update', 'insert', 'scan', 'readmodifywrite'), 0), **shares).items()}
    count = operations // SCAN_SHARE if 'scan' in shares else operations
    return ycsb('-t', args, dict(properties, operationcount=max(count, 1), requestdistribution=distribution, maxscanlength=100))


HEAD = f"{'workload':<26}{'server':<12}{'ops/s':>10}{'p50 us':>9}{'p99 us':>9}{'p999 us':>10}{'failed':>8}{'cpu us/op':>11}"


def line(name, workload, run):
    first = max(run['kinds'].items(), key=lambda k: k[1]['operations'])[1] if run['kinds'] else {}
    return (f"{workload:<26}{name:<12}{run.get('throughput', 0):>10.0f}{first.get('p50', 0):>9.0f}{first.get('p99', 0):>9.0f}"
            f"{first.get('p999', 0):>10.0f}{run['failed']:>8}{run.get('cpu_us_per_operation', 0):>11.1f}")


def show(results, workload):
    print(line(results['name'], workload, results['runs'][workload]), flush=True)


def pairs(files):
    """Operations per second of the servers' CPU: median, least and most of the runs in which others used less than their share."""
    found, left_out = {}, 0
    for file in files:
        result = json.load(open(file, encoding='ascii'))
        for workload, run in result['runs'].items():
            if run.get('other_cpu_share', 0) > OTHERS_MAX:
                left_out += 1
                continue
            found.setdefault((result['cell'], workload), {}).setdefault(result['name'], []).append(run)
    print(f"{'cell':<18}{'workload':<26}{'server':<18}{'ops/CPU s':>10}{'least':>8}{'most':>8}{'ops/s':>9}{'p99 us':>9}{'MB':>7}{'failed':>8}{'ratio':>8}")
    for (cell, workload), systems in found.items():
        rows, medians = [], {}
        for name, runs in systems.items():
            per_cpu = sorted(run['operations'] / run['server_cpu'] for run in runs)
            medians[name] = statistics.median(per_cpu)
            p99 = statistics.median(max(kind.get('p99', 0) for kind in run['kinds'].values()) for run in runs)
            speed = statistics.median(run['throughput'] for run in runs)
            memory = max(run.get('resident_mb', 0) for run in runs)
            rows.append(f"{cell:<18}{workload:<26}{name:<18}{medians[name]:>10.0f}{per_cpu[0]:>8.0f}{per_cpu[-1]:>8.0f}{speed:>9.0f}{p99:>9.0f}"
                        f"{memory:>7.0f}{sum(run['failed'] for run in runs):>8}")
        theirs = [median for name, median in medians.items() if name != OURS]
        if theirs and OURS in medians:  # the better of theirs counts
            rows[-1] += f'{medians[OURS] / max(theirs):>7.2f}x'
        print('\n'.join(rows))
    print(f'{left_out} runs left out: others used over {OTHERS_MAX:.0%} of the machine')
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    m = commands.add_parser('measure')
    for name, kind in (('name', str), ('host', str), ('port', int), ('pid', str), ('out', str)):
        m.add_argument(name, type=kind)
    m.add_argument('--records', type=int, default=1000000)
    m.add_argument('--operations', type=int, default=1000000)
    m.add_argument('--warm', type=int, default=0)
    m.add_argument('--threads', type=int, default=32)
    m.add_argument('--workloads', default=','.join(WORKLOADS))
    m.add_argument('--cell', default='')
    m.add_argument('--loaded', action='store_true', help='the records are there')
    m.add_argument('--property', action='append', default=[])
    p = commands.add_parser('pairs')
    p.add_argument('files', nargs='+')
    args = parser.parse_args()
    if args.command == 'pairs':
        return pairs(args.files)
    measure(args)
    return 0


if __name__ == '__main__':
    sys.exit(main())
