"""Prometheus on a node of the tarball: it scrapes both pages of metrics under load and answers what
k8ssandra's dashboards and our own ask for; it evaluates our alert rules, and none fires. promtool
looks at the pages and at the rules, and runs the rules' unit tests.

prometheus.py TARBALL FOLDER IP"""

import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

from common import Home, clean, fail, ok, said, session, unpack, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALERTS = os.path.join(ROOT, "packaging/grafana/alerts.yml")
DASHBOARD = os.path.join(ROOT, "packaging/grafana/helenus.json")
# The one list of what k8ssandra's dashboards ask for.
ASKED_FOR = os.path.join(ROOT, "bin/helenus/tests/process/dashboards.rs")
PREFIX = "org_apache_cassandra_metrics_"
PORT = 9095
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ['{alerts}']
scrape_configs:
  - {{job_name: helenus, static_configs: [{{targets: ['{ip}:7070']}}]}}
  - job_name: k8ssandra
    metrics_path: /metrics/k8ssandra
    static_configs: [{{targets: ['{ip}:7070']}}]
"""
# Panels of k8ssandra's dashboards that are more than a rate of one name.
PANELS = {
    "nodes up": f"count by (pod_name) ({PREFIX}thread_pools_completed_tasks >= 0)",
    "p99 of reads": f"histogram_quantile(0.99, sum by (le) (rate({PREFIX}client_request_latency_bucket"
    '{request_type="Read"}[30s])))',
    "cluster of a variable": f'{PREFIX}thread_pools_completed_tasks{{cluster="Test Cluster", rack="rack1"}}',
    "table of a variable": f'{PREFIX}table_read_total_latency{{keyspace="ks", table="t"}}',
}


def main():
    tarball, folder, ip = sys.argv[1:]
    rules()
    home = unpack(tarball, os.path.join(folder, "home"))
    with open(os.path.join(home, "conf/helenus.yaml"), "a", encoding="utf-8") as file:
        file.write(f"\nmetrics_address: {ip}\n")
    node = Home(home, ip)
    node.start()
    try:
        with Load(ip):
            page = urllib.request.urlopen(f"http://{ip}:7070/metrics", timeout=30).read()
            linted(page)
            scraped(folder, ip, node)
    finally:
        node.stop()


def rules():
    said("promtool", "check", "rules", ALERTS)
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "alerts_test.yml")
    said("promtool", "test", "rules", here)
    with open(ALERTS, encoding="utf-8") as file:
        alerts = re.findall(r"- alert: (\w+)", file.read())
    with open(here, encoding="utf-8") as file:
        text = file.read()
    for alert in alerts:
        quiet = f"alertname: {alert}, exp_alerts: []" in text
        fires = re.search(rf"alertname: {alert}\n\s+exp_alerts:\n\s+- exp_labels", text)
        if not (quiet and fires):
            fail(f"no unit test that {alert} fires, and when it does not")
    ok(f"promtool check rules, test rules: {len(alerts)} alerts fire when they should and not before")


def linted(page):
    """promtool parses all of it. It has a taste in names, too, which Cassandra's do not meet."""
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True)
    notes = done.stderr.decode().splitlines()
    # 3: parsed, with remarks
    if done.returncode not in (0, 3):
        fail(f"promtool check metrics: {notes[:5]}")
    ok(f"promtool check metrics: /metrics parses; {len(notes)} remarks on names")


class Load:
    """Reads and writes in a thread, until the end."""

    def __init__(self, ip):
        self.ip, self.ended = ip, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        cql, self.end = session(self.ip)
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        cql.execute(f"CREATE KEYSPACE ks WITH replication = {replication}")
        cql.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
        self.cql = cql
        self.thread.start()
        return self

    def run(self):
        insert = self.cql.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
        select = self.cql.prepare("SELECT v FROM ks.t WHERE k = ?")
        once = self.cql.prepare("INSERT INTO ks.t (k, v) VALUES (?, 'x') IF NOT EXISTS")
        k = 0
        while not self.ended.is_set():
            self.cql.execute(insert, (k % 500, f"v{k}"))
            self.cql.execute(select, (k % 500,))
            if k % 10 == 0:
                self.cql.execute(once, (k % 500,))
                self.cql.execute("SELECT k FROM ks.t LIMIT 5")
            k += 1

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.end()


def ask(path, **words):
    url = f"http://127.0.0.1:{PORT}/api/v1/{path}?{urllib.parse.urlencode(words)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        if error.code != 503:
            fail(f"{path} {words}: {error.read()}")
    except OSError:
        pass
    return None


def values(query):
    found = ask("query", query=query)
    return [float(series["value"][1]) for series in found["result"]] if found else []


def asked_for():
    with open(ASKED_FOR, encoding="utf-8") as file:
        text = file.read()
    names = [PREFIX + name for name in re.findall(r'\("(\w+)", (?:true|false)\),', text)]
    jvm = re.search(r"const JVM: &\[&str\] =\s+&\[(.*?)\];", text, re.S).group(1)
    return names + re.findall(r'"(\w+)"', jvm)


def scraped(folder, ip, node):
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(ip=ip, alerts=ALERTS))
    said("promtool", "check", "config", config)
    words = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/series"]
    words += [f"--web.listen-address=127.0.0.1:{PORT}", "--log.level=warn"]
    with open(os.path.join(folder, "prometheus.log"), "wb") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        until("both pages are scraped", lambda: values("up") == [1.0, 1.0])
        for _ in range(2):
            node.nodetool("flush", "ks")
        node.nodetool("compact", "ks")
        answered()
    finally:
        server.terminate()
        server.wait()


def answered():
    names = asked_for()
    for name in names:
        query = f"rate({name}[30s])" if re.search("_(total|bucket|count)$", name) else name
        until(f"data of {query}", lambda: values(query))
    rate = f'sum(rate({PREFIX}client_request_latency_count{{request_type="Read"}}[30s]))'
    until("a rate of reads", lambda: values(rate) and values(rate)[0] > 0)
    for panel, query in PANELS.items():
        until(panel, lambda: values(query))
    ok(f"{len(names)} names of k8ssandra's dashboards and {len(PANELS)} of their panels have data")
    own = expressions()
    for query in own:
        if ask("query", query=query) is None:
            fail(f"not answered: {query}")
    filled = sum(1 for query in own if values(query))
    ok(f"{len(own)} queries of packaging/grafana/helenus.json are valid, {filled} have data now")
    rules_are_evaluated()


def expressions():
    """Those of our dashboard, with its variables filled in."""
    with open(DASHBOARD, encoding="utf-8") as file:
        text = file.read()
    found = []
    for expression in re.findall(r'"expr": ("(?:[^"\\]|\\.)*")', text):
        query = json.loads(expression).replace("$__rate_interval", "30s").replace("$__interval", "10s")
        found.append(re.sub(r"\$\{?\w+\}?", ".*", query))
    return found


def rules_are_evaluated():
    def all_rules():
        groups = (ask("rules") or {"groups": []})["groups"]
        return [rule for group in groups for rule in group["rules"]]

    until("rules are evaluated", lambda: all(rule["health"] != "unknown" for rule in all_rules()))
    bad = [rule["name"] for rule in all_rules() if rule["health"] != "ok"]
    firing = [rule["name"] for rule in all_rules() if rule["state"] == "firing"]
    if bad or firing:
        fail(f"rules with errors: {bad}; firing: {firing}")
    ok(f"{len(all_rules())} alert rules are evaluated, none fires")


main()
