"""`leafcast node list --off-since`: who has been off for so long, and nobody else."""

from leafcast.cli.commands.node_table import nodes_off

HOUR_MS = 3_600_000
NOW_MS = 100 * HOUR_MS


def node(path, state, hours):
    reached = state == "up"
    since = NOW_MS - hours * HOUR_MS if hours is not None else 0
    return {"path": path, "state": state, "reached": reached, "sinceMs": since}


def test_only_nodes_that_were_off_for_the_whole_time_are_shown():
    nodes = [
        node("/up", "up", None),
        node("/late", "unreachable", 23),
        node("/yesterday", "unreachable", 24),
        node("/stopped", "stopped", 60),
        node("/never", "never joined", None),
        node("/back", "up", 60),
    ]
    assert [one["path"] for one in nodes_off(nodes, 24 * 3600, NOW_MS)] == [
        "/yesterday",
        "/stopped",
    ]
