"""Figures: their names, how they are written, and what is shown of placements."""

import re

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metrics_families,
)

from leafcast.centre.centre_readings import PLACEMENTS_MAX, placement_readings
from leafcast.metrics.catalogue import SECTIONS
from leafcast.metrics.exposition import exposed
from leafcast.metrics.reading import Metric, MetricKind
from leafcast.node.process_readings import process_readings
from relay.shell.distribution import Distribution
from relay.shell.propagation_times import PropagationStage
from tests.metrics_page import PAGE, with_tables
from tests.scraped import at, by, samples

CATALOGUE = [metric for section in SECTIONS.values() for metric in section]
SECONDS = Metric("leafcast_test_seconds", MetricKind.HISTOGRAM, "Only here.", ("stage",))


def shown(readings):
    content_type, body = exposed(list(readings), "")
    assert content_type.startswith("text/plain")
    return samples(body.decode())


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda it: it.name)
def test_a_name_says_its_kind_and_its_unit(metric):
    assert re.fullmatch(r"(leafcast|workqueue)_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
    assert metric.name.endswith("_info") == (metric.kind is MetricKind.INFO)
    # Base units only.
    assert not re.search(r"_(ms|milliseconds|minutes|hours|kb|megabytes|percent)(_|$)", metric.name)
    assert metric.help.endswith(".")
    assert not {"destination", "child"} & set(metric.labels)


def test_names_are_each_there_once():
    names = [metric.name for metric in CATALOGUE]
    assert len(names) == len(set(names))


def test_a_distribution_counts_each_observation_within_its_bound_and_all_above():
    times = Distribution((0.5, 1, 5))
    for seconds in (0.2, 0.5, 3, 9):
        times.observe(seconds)
    found = shown([SECONDS.of(times, "applied")])
    buckets = by("le", found, "leafcast_test_seconds_bucket")
    assert buckets == {"0.5": 2, "1.0": 2, "5.0": 3, "+Inf": 4}
    assert found[at("leafcast_test_seconds_count", stage="applied")] == 4
    assert found[at("leafcast_test_seconds_sum", stage="applied")] == pytest.approx(12.7)


def test_who_takes_open_metrics_is_shown_of_which_change_the_last_time_was():
    times = Distribution((1, 5))
    times.observe(0.2, "first", 1_000)
    times.observe(0.3, "second", 2_500)
    times.observe(9)
    content_type, body = exposed(
        [SECONDS.of(times, "applied")], "application/openmetrics-text; version=1.0.0"
    )
    assert content_type.startswith("application/openmetrics-text")
    (family,) = (
        it for it in open_metrics_families(body.decode()) if it.name == "leafcast_test_seconds"
    )
    exemplars = {it.labels["le"]: it.exemplar for it in family.samples if "le" in it.labels}
    assert exemplars["1.0"].labels == {"trace_id": "second"}
    assert (exemplars["1.0"].value, float(exemplars["1.0"].timestamp)) == (0.3, 2.5)
    assert exemplars["5.0"] is None
    assert exemplars["+Inf"] is None


def test_checks_and_the_role_are_shown_whichever_they_are():
    found = shown(process_readings({"session": "", "cluster": "it is away"}, "standby"))
    assert found[at("leafcast_check", check="session")] == 1
    assert found[at("leafcast_check", check="cluster")] == 0
    assert by("role", found, "leafcast_member_role") == {"active": 0, "standby": 1, "none": 0}


def test_each_destination_of_a_placement_counts_in_one_state():
    status = {
        "destinations": 9,
        "synced": 4,
        "pending": 1,
        "failing": 1,
        "unreachable": 2,
        "healthy": 3,
        "neverJoined": 5,
        "complete": True,
        "conditions": [{"type": "Synced", "status": "False"}],
        "held": [{"reason": "ObjectsRefused"}, {"reason": "ObjectsRefused"}],
    }
    shop = {"space": "1", "placement": "shop"}
    found = shown(placement_readings("1", {"shop": {"status": status}, "new": {}}))
    assert by("state", found, "leafcast_placement_destinations") == {
        "synced": 4,
        "pending": 1,
        "waiting": 0,
        "failing": 1,
        "frozen": 0,
        "unreachable": 2,
        "other": 1,
        "never joined": 5,
    }
    assert found[at("leafcast_placement_healthy_destinations", **shop)] == 3
    assert (
        found[at("leafcast_placement_status_condition", **shop, type="Synced", status="false")] == 1
    )
    assert found[at("leafcast_placement_holds", **shop, reason="ObjectsRefused")] == 2
    assert found[at("leafcast_placements", space="1")] == 2
    assert found[at("leafcast_report_complete_ratio", space="1")] == 0.5


def test_an_answer_is_bounded_however_many_placements_there_are():
    many = {f"p{n}": {"status": {"destinations": 1}} for n in range(PLACEMENTS_MAX + 5)}
    readings = list(placement_readings("1", many))
    placements = {it.labels[1] for it in readings if len(it.labels) > 1}
    assert len(placements) == PLACEMENTS_MAX
    assert readings[0].value == PLACEMENTS_MAX + 5


def test_the_page_lists_all_metrics_as_they_are():
    page = PAGE.read_text()
    assert page.count("| `leafcast_build_info` |") == 1
    assert with_tables(page) == page, "run `make docs`"


def test_the_page_names_each_stage_of_a_change():
    page = PAGE.read_text()
    assert all(f"| `{stage.value}` |" in page for stage in PropagationStage)
