"""Rules, alerts, runbooks and boards speak of figures that there are, and promtool takes them."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from leafcast.metrics.catalogue import SECTIONS
from leafcast.metrics.exposition import exposed
from leafcast.metrics.reading import MetricKind
from leafcast.node.process_readings import process_readings
from relay.shell.distribution import Distribution
from relay.shell.propagation_times import BOUNDS
from tests.unit.test_tidy import ROOT

MONITORING, HERE = ROOT / "deploy" / "monitoring", ROOT / "tests" / "unit"
RULES = MONITORING / "prometheus-rules.yaml"
SCENES = [HERE / "prometheus_rules_test.yaml", HERE / "prometheus_rules_slowly_test.yaml"]
BOARDS = sorted(MONITORING.glob("grafana-*.json"))
CATALOGUE = [metric for section in SECTIONS.values() for metric in section]
NAME = re.compile(r"\b(?:leafcast_|workqueue_|process_|slo:)[a-z0-9_:]+|\bup\b(?=\{)")
SAID = re.compile(r'"[^"]*"')
HEADINGS = ["What it means", "Impact", "Causes", "Checks", "Remedies"]
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is of Debian's prometheus")

RULE_LIST = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULE_LIST if "alert" in rule}


def shown():
    """All names that Prometheus may find: figures, those of the process, and what rules record."""
    names = {"up", *(rule["record"] for rule in RULE_LIST if "record" in rule)}
    for metric in CATALOGUE:
        parts = ("_bucket", "_count", "_sum") if metric.kind is MetricKind.HISTOGRAM else ("",)
        names |= {metric.name + part for part in parts}
    _, body = exposed(list(process_readings({}, "active")), "")
    return names | set(re.findall(r"^process_[a-z_]+", body.decode(), re.MULTILINE))


def expressions():
    yield from (rule["expr"] for rule in RULE_LIST)
    for board in BOARDS:
        panels = json.loads(board.read_text())["panels"]
        assert panels
        yield from (target["expr"] for panel in panels for target in panel["targets"])


def test_every_rule_and_every_panel_asks_for_figures_that_there_are():
    known = shown()
    for expression in expressions():
        asked = set(NAME.findall(SAID.sub('""', expression)))
        assert asked or expression.startswith("vector("), expression
        assert asked <= known, expression


def test_every_bound_that_a_rule_names_is_one_that_is_shown():
    bounds = {repr(float(bound)) for bound in BOUNDS}
    named = {it for expression in expressions() for it in re.findall(r'le="([^"]+)"', expression)}
    assert named
    assert named <= bounds


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    pages = {}
    for name, rule in ALERTS.items():
        page = ROOT / rule["annotations"]["runbook"]
        text = page.read_text()
        assert text.startswith(f"# {name}\n")
        parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
        assert parts[1::2] == HEADINGS, page
        assert all(part.strip() for part in parts[2::2]), page
        pages[page] = name
    assert set(pages) == set((ROOT / "docs" / "runbooks").glob("*.md"))


def test_every_alert_is_seen_to_fire_in_a_scene():
    text = "".join(file.read_text() for file in SCENES)
    fired = re.findall(r'alertname="(\w+)", alertstate="firing".*\n.*\n +exp_samples: \[\{', text)
    assert set(fired) == set(ALERTS)


@needs_promtool
def test_promtool_takes_the_rules_and_sees_each_alert_fire_in_its_scene():
    subprocess.run([PROMTOOL, "check", "rules", RULES], check=True, capture_output=True)
    done = subprocess.run(
        [PROMTOOL, "test", "rules", *SCENES], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_has_nothing_to_say_of_names_and_help():
    one = Distribution((1,))
    readings = [
        metric.of(one if metric.kind is MetricKind.HISTOGRAM else 1, *metric.labels)
        for metric in CATALOGUE
    ]
    _, body = exposed(readings, "")
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=body, check=False, capture_output=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
