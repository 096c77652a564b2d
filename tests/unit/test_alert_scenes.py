"""Alerts fire, and end, over what was scraped of real nodes.

`tests/alert_scenes/recorded` holds it: `in_memory.py` plays on a tree in memory, whose minutes
leap, and `on_servers.py` on `leafcast up`, where each scrape counts as a minute. Every alert has a
scene, and a new one fails a test. Where an alert comes at several paces or for several reasons, the
others have series written by hand in `prometheus_rules*_test.yaml`: tickets of both objectives,
which take days, destinations that wait for a day, and a program that ends again and again.
"""

import subprocess

import pytest
import yaml

from tests.alert_scenes import in_memory
from tests.alert_scenes.series import RECORDED, recorded
from tests.unit.test_monitoring import ALERTS, PROMTOOL, RULES, SCENES, needs_promtool

MOMENTS = {
    "all-is-well": {10: "", 25: "", 44: ""},
    "node-away": {
        5: "",
        9: "NodesOutOfReach",
        15: "NodesOutOfReach",
        20: "NodesOutOfReach NodeNotReady NodeUnreachable CheckFails",
        30: "NodesOutOfReach NodeNotReady NodeUnreachable CheckFails ViewStale",
        # Of the reach of the last hour much is spent.
        40: "NodesOutOfReach",
    },
    "old-view": {20: "", 24: "", 28: "ViewStale", 40: "ViewStale", 50: ""},
    "records-altered": {4: "", 8: "RecordsRefused", 18: "RecordsRefused", 25: ""},
    "mail-unread": {
        2: "",
        16: "NodesOutOfReach NodeNotReady NodeUnreachable",
        20: "NodesOutOfReach NodeNotReady NodeUnreachable MailLag",
        25: "NodesOutOfReach",
    },
    "objects-refused": {
        16: "",
        22: "PlacementFailing PlacementStalled",
        31: "PlacementFailing PlacementStalled",
        # It came half an hour late, and nothing else was to be delivered.
        40: "DeliverySlow",
    },
    "record-kept-back": {
        30: "",
        36: "PlacementPending",
        46: "PlacementPending",
        55: "DeliverySlow",
    },
    "link-flaps": {3: "", 10: "DeliverySlow", 30: "DeliverySlow"},
    "hub-hangs": {9: "", 13: "ControllerStuck", 16: "ControllerStuck"},
    "disk-filled": {2: "", 6: "", 10: "DiskNearlyFull", 15: ""},
    "server-silent": {2: "", 6: "", 10: "ServerSilent", 13: ""},
    "server-killed": {2: "", 4: "", 8: "ServerRestarts", 11: "ServerRestarts"},
    "process-down": {2: "", 6: "", 10: "Down", 13: ""},
    # In hours.
    "person-waited-for": {
        3: "",
        20: "PlacementStalled",
        26: "PlacementStalled",
        29: "PlacementStalled RolloutWaits",
        33: "",
    },
}
"""By scene, the alerts that fire at a scrape, and no others."""


@pytest.mark.slow
@needs_promtool
def test_at_each_moment_of_a_scene_those_alerts_fire_that_it_is_for(tmp_path):
    intervals = sorted({recorded(scene)["interval"] for scene in MOMENTS})
    files = [tmp_path / f"{interval}.yaml" for interval in intervals]
    for interval, file in zip(intervals, files, strict=True):
        file.write_text(yaml.safe_dump(played(interval)))
    done = subprocess.run(
        [PROMTOOL, "test", "rules", *files], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def played(interval):
    """A file for promtool, of all scenes that are scraped at this interval."""
    return {
        "rule_files": [str(RULES)],
        "evaluation_interval": interval,
        "group_eval_order": yaml.safe_load(SCENES[0].read_text())["group_eval_order"],
        "tests": [
            scene_played(scene, kept)
            for scene in MOMENTS
            if (kept := recorded(scene))["interval"] == interval
        ],
    }


def scene_played(scene, kept):
    number, unit = int(kept["interval"][:-1]), kept["interval"][-1]
    asked = [
        {
            "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": f"{moment * number}{unit}",
            "exp_samples": [
                {"labels": f'{{alertname="Leafcast{name}"}}', "value": 1} for name in fires.split()
            ],
        }
        for moment, fires in MOMENTS[scene].items()
    ]
    series = [{"series": name, "values": values} for name, values in kept["series"].items()]
    return {
        "name": scene,
        "interval": kept["interval"],
        "input_series": series,
        "promql_expr_test": asked,
    }


def test_every_alert_has_a_scene_of_real_nodes():
    told = {
        f"Leafcast{name}"
        for scene in MOMENTS.values()
        for it in scene.values()
        for name in it.split()
    }
    assert sorted(ALERTS.keys() - told) == []
    assert sorted(MOMENTS) == sorted(file.stem for file in RECORDED.glob("*.yaml"))


@pytest.mark.long
@pytest.mark.parametrize("scene", in_memory.SCENES)
def test_a_scene_that_is_played_now_shows_the_series_that_are_kept(scene):
    if not in_memory.has_disks():
        pytest.skip("no file system may be mounted here")
    anew = in_memory.scraped(scene)
    assert [name for name, _ in anew.sorted()] == sorted(recorded(scene)["series"])
