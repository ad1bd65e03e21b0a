"""A KairosDB over a node, driven through its own HTTP interface: run.py HOST LIBRARY FOLDER.

LIBRARY has its jars; FOLDER is where it puts its queue. Says `ok WHAT` of each step; exit code 1 if one fails.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

PORT = 18080
START_SECONDS, STOP_SECONDS, SETTLE_SECONDS = 120, 20, 60
# two of its rows: one holds three weeks
FIRST, STEP, POINTS = 1750000000000, 3600000, 900
HOSTS = ('web-1', 'web-2', 'web-3')

# what is not said here is as in the file of its own jar; compact tables are no more since Cassandra 4
CONFIG = '''
kairosdb: {
  service.telnet: "<disabled>"
  service.reporter: "<disabled>"
  service.datastore: "org.kairosdb.datastore.cassandra.CassandraModule"
  jetty: { port: %(port)d, address: "%(host)s" }
  datastore.cassandra: {
    table_create_with.data_points: ""
    write_cluster: { keyspace: "app_kairosdb", cql_host_list: ["%(host)s"], tag_indexed_row_key_lookup_metrics: ["cpu.load"] }
  }
}
'''

LOGGING = '''<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss} %-5level %logger{20} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
'''


class Kairos:
    def __init__(self, host, library, folder):
        folder = os.path.abspath(folder)
        self.base = f'http://{host}:{PORT}/api/v1/'
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        config, logging = os.path.join(folder, 'kairosdb.conf'), os.path.join(folder, 'logback.xml')
        for path, text in ((config, CONFIG % dict(host=host, port=PORT)), (logging, LOGGING)):
            with open(path, 'w', encoding='ascii') as f:
                f.write(text)
        java = ['java', '-Xmx512m', '-XX:TieredStopAtLevel=1', '--add-opens=java.base/java.lang=ALL-UNNAMED',
                '--add-opens=java.base/java.util=ALL-UNNAMED',
                f'-Dlogback.configurationFile={logging}', '-cp', os.path.join(os.path.abspath(library), '*'), 'org.kairosdb.core.Main', '-c', 'run', '-p', config]
        with open(os.path.join(folder, 'log'), 'wb') as log:
            self.process = subprocess.Popen(java, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {'Content-Type': 'application/json'}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def wait(self):
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return self.ask('version')['version']
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def query(self, name, start=FIRST, end=FIRST + STEP * POINTS, **more):
        """Groups of an answer, each as (its tags, its points)."""
        body = dict(start_absolute=start, end_absolute=end, metrics=[dict(name=name, **more)])
        results = self.ask('datapoints/query', body)['queries'][0]['results']
        return [(r.get('tags', {}), r['values']) for r in results]

    def count(self, name, **more):
        return sum(len(values) for _, values in self.query(name, **more))


def same(wanted, found):
    if wanted != found:
        raise AssertionError(f'wanted {str(wanted)[:300]}, found {str(found)[:300]}')


def settled(wanted, look):
    """Points are written, and deleted, a while after they were taken."""
    end = time.monotonic() + SETTLE_SECONDS
    while look() != wanted and time.monotonic() < end:
        time.sleep(0.5)
    same(wanted, look())


def value(n, i):
    return i + n / 4


def story(kairos):
    print(f'ok {kairos.wait()} makes its tables and serves')
    for n, host in enumerate(HOSTS):
        points = [[FIRST + STEP * i, value(n, i)] for i in range(POINTS)]
        for name in ('cpu.load', 'disk.free'):
            kairos.ask('datapoints', [dict(name=name, tags=dict(host=host, dc='eu'), datapoints=points)])
    total = POINTS * len(HOSTS)
    for name in ('cpu.load', 'disk.free'):
        settled(total, lambda: kairos.count(name))
    print(f'ok {2 * total} points of {2 * len(HOSTS)} series')
    groups = kairos.query('cpu.load', group_by=[dict(name='tag', tags=['host'])])
    same([[h] for h in HOSTS], [tags['host'] for tags, _ in groups])
    for n, (_, values) in enumerate(groups):
        same([[FIRST + STEP * i, value(n, i)] for i in range(POINTS)], values)
    print('ok every point where it was, by series')
    backward = kairos.query('disk.free', order='desc', limit=5, tags=dict(host=['web-2']))
    same([[FIRST + STEP * i, value(1, i)] for i in range(POINTS - 1, POINTS - 6, -1)], backward[0][1])
    part = kairos.query('cpu.load', FIRST + STEP * 10, FIRST + STEP * 19, tags=dict(host=['web-3']))
    same([[FIRST + STEP * i, value(2, i)] for i in range(10, 20)], part[0][1])
    sums = kairos.query('cpu.load', aggregators=[dict(name='count', sampling=dict(value=1, unit='years'))])
    same(total, sum(v for _, values in sums for _, v in values))
    print('ok by a tag, backward with a limit, a part of a row, counted')
    same(True, {'cpu.load', 'disk.free'} <= set(kairos.ask('metricnames')['results']))
    body = dict(start_absolute=FIRST, end_absolute=FIRST + STEP * 99, metrics=[dict(name='disk.free', tags=dict(host=['web-1']))])
    kairos.ask('datapoints/delete', body)
    settled(total - 100, lambda: kairos.count('disk.free'))
    kairos.ask('metric/cpu.load', method='DELETE')
    settled(0, lambda: kairos.count('cpu.load'))
    settled(False, lambda: 'cpu.load' in kairos.ask('metricnames')['results'])
    print('ok a part of a series deleted, then a metric')


def main():
    kairos = Kairos(*sys.argv[1:])
    try:
        story(kairos)
        return 0
    except (AssertionError, OSError, KeyError, IndexError) as e:
        print(f'failed: {e!r}', file=sys.stderr)
        return 1
    finally:
        kairos.close()


if __name__ == '__main__':
    sys.exit(main())
