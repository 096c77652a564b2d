"""The demo's figures are true of what the tree shows, and its pictures fit their terminal."""

import io

import pytest
from rich.console import Console

from leafcast.demo.progress import DemoProgress
from leafcast.demo.view import Frame, draw
from leafcast.demo.workload import load_shop, prepare
from leafcast.local.views import NodeRow, PlacementView, TreeShape, TreeView
from schemas.objects.manifest_files import load_manifests

LONG = "deployments.apps/shop/" + "web-" * 30


def placement(name="shop", total=6, synced=6, healthy=6, complete=True, exceptions=()):
    return PlacementView(
        name, total, {"synced": synced}, {"healthy": healthy}, complete, tuple(exceptions)
    )


def nodes(shape: TreeShape, up=True) -> tuple[NodeRow, ...]:
    found = [NodeRow("/", "centre", up, 22, 21, 0)]
    for region in range(1, shape.regions + 1):
        path = f"/region-{region}"
        found.append(NodeRow(path, "relay", up, 12, 21, 0))
        for depth in range(1, shape.depth - 2):
            path = f"{path}/area-{depth}"
            found.append(NodeRow(path, "relay", up, 12, 21, 0))
        found += [
            NodeRow(f"{path}/site-{site}", "edge", up, 0, 18, 15)
            for site in range(1, shape.sites + 1)
        ]
    return tuple(found)


def progress(shape=None, workload=None) -> DemoProgress:
    made = DemoProgress(shape or TreeShape(), workload or load_shop(), began=100.0)
    made.up = made.applied = 102.0
    return made


def two_placements():
    text = """\
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: one}
spec: {downsync: [{apiGroup: ""}], locationSelectors: [{}]}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: two}
spec: {downsync: [{apiGroup: ""}], locationSelectors: [{matchLabels: {region: region-1}}]}
"""
    return prepare(load_manifests(text, "test"), "test")


def view(*placements, shape=None):
    return TreeView(nodes(shape or TreeShape()), placements)


def lines_of(frame: Frame, height=40, width=80) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(draw(frame, console))
    return console.export_text().splitlines()


def test_each_step_has_the_time_of_its_first_sight():
    steps = progress()
    steps.observe(view(placement(synced=3, healthy=0)), 103.0)
    assert (steps.synced, steps.healthy) == (None, None)
    steps.observe(view(placement(healthy=2)), 104.5)
    steps.observe(view(placement()), 106.0)
    steps.observe(view(placement()), 109.0)
    assert steps.seconds() == {
        "tree_up": 2.0,
        "apply_to_all_synced": 2.5,
        "apply_to_all_healthy": 4.0,
    }


def test_incomplete_counts_and_missing_destinations_are_not_all():
    steps = progress()
    assert not steps.figures(view(placement(complete=False))).all_synced
    assert not steps.figures(view(placement(total=2, synced=2, healthy=2))).all_synced
    assert not steps.figures(view()).all_synced
    assert steps.figures(view(placement())).all_healthy


def test_working_without_being_delivered_is_not_done():
    assert not progress().figures(view(placement(synced=5))).all_healthy


def test_of_several_placements_the_one_that_lacks_most_counts():
    steps = progress(workload=two_placements())
    one, two = placement("one"), placement("two", total=3, synced=3, healthy=3)
    assert steps.figures(view(one, two)).all_healthy
    lagging = placement("two", total=3, synced=1, healthy=0)
    figures = steps.figures(view(one, lagging))
    assert (figures.destinations, figures.synced, figures.healthy) == (6, 4, 3)
    assert not steps.figures(view(one)).complete
    assert steps.figures(view(one)).synced == 0


def test_only_the_centres_mail_is_counted():
    assert progress().document(view(placement()))["mail_written_by_centre"] == 22


def test_what_is_missing_is_told_with_its_reasons():
    steps = progress()
    assert list(steps.missing(view(placement()))) == []
    said = list(steps.missing(view(placement(healthy=4, exceptions=["web: no"]))))
    assert said == ["placement shop: of 6 destinations 6 are synced and 4 healthy", "  web: no"]
    assert "not sent it" in next(steps.missing(view()))
    assert "no location matches" in next(steps.missing(view(placement(total=0))))
    steps.up = None
    down = TreeView(nodes(TreeShape(), up=False)[:3], ())
    said = list(steps.missing(down))
    assert said[0] == "the tree is not up: 0 of 9 nodes are in session"
    assert said[1] == "  waiting: /, /region-1, /region-1/site-1"


@pytest.mark.parametrize("height", [24, 30, 60])
@pytest.mark.parametrize(
    "shape", [TreeShape(1, 1), TreeShape(), TreeShape(2, 3, 8), TreeShape(1, 64), TreeShape(16, 5)]
)
def test_every_picture_fits_its_terminal(shape, height):
    total = shape.destinations
    shown = placement(total=total, synced=total // 2, healthy=0, exceptions=[LONG, LONG])
    found = TreeView(nodes(shape), (shown,))
    lines = lines_of(Frame(found, progress(shape), 103.0), height)
    assert max(map(len, lines)) <= 80
    assert len(lines) < height
    text = "\n".join(lines)
    for wanted in ("region-1", "regions", "sites", "apply -> all synced", "working (healthy)"):
        assert wanted in text


def test_a_tree_with_room_shows_every_node():
    text = "\n".join(lines_of(Frame(view(placement()), progress(), 103.0)))
    assert text.count("site-") == 6
    assert text.count("region-") == 2


def test_a_tree_without_room_tells_its_sites_as_counts():
    shape = TreeShape(1, 64)
    text = "\n".join(lines_of(Frame(TreeView(nodes(shape), ()), progress(shape), 103.0), 24))
    assert "site-1 … site-64" in text
    assert "64/64" in text


def test_a_picture_of_nothing_yet_can_be_drawn():
    started = DemoProgress(TreeShape(), load_shop(), began=100.0)
    text = "\n".join(lines_of(Frame(TreeView((), ()), started, 100.1)))
    assert "none yet" in text
    assert "0/9" in text
