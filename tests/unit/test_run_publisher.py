"""`leafcast run --publisher`: who may sign releases for a node on a server of someone else."""

import pytest
from click.testing import CliRunner

from leafcast.cli import run_centre
from leafcast.cli.main import cli
from leafcast.join import external_node
from leafcast.members.layout import PortPool, lay_out_members
from leafcast.members.settings import FILE as MEMBER_FILE
from leafcast.publisher.pinning import pinned_publisher
from relay.adapters.clock import SystemDice
from schemas.releases.release_folder import RELEASES
from schemas.values.identity import NodePath, TreeId
from tests.launched import ROOTS


class Started(Exception):
    """The node would run now."""


@pytest.fixture
def laid_out(tmp_path):
    """A tree's folders, and the publisher's root."""
    (tmp_path / "root.json").write_bytes(ROOTS.data)
    done = leafcast("layout", tmp_path / "tree", "--regions=1", "--sites=1")
    assert done.exit_code == 0, done.output
    return tmp_path / "tree"


def leafcast(*words):
    return CliRunner().invoke(cli, [*map(str, words)])


@pytest.mark.parametrize("role", ["relay", "edge"])
def test_a_node_pins_the_publisher_and_shares_that_folder_with_its_launcher(
    laid_out, monkeypatch, role
):
    started = []

    def runtime(_world, identity, *_rest):
        started.append(identity)
        raise Started

    monkeypatch.setattr(external_node, "NodeRuntime", runtime)
    name = "region-1" if role == "relay" else "region-1_site-1"
    (file,) = (it for it in laid_out.glob("*/node.yaml") if it.parent.name.endswith(name))
    leafcast("run", role, "--config", file, "--publisher", laid_out.parent / "root.json")
    (identity,) = started
    assert identity.releases == file.parent / RELEASES
    assert pinned_publisher(file.parent).data == ROOTS.data


def test_a_centre_pins_the_publisher_where_its_launcher_looks(laid_out, monkeypatch):
    monkeypatch.setattr(run_centre, "run_centre", lambda *_rest, **_more: None)
    file, root = laid_out / "centre" / "node.yaml", laid_out.parent / "root.json"
    done = leafcast("run", "center", "--config", file, "--publisher", root)
    assert done.exit_code == 0, done.output
    assert pinned_publisher(laid_out).data == ROOTS.data


@pytest.mark.parametrize(
    ("at", "role", "more"), [("/emea", "relay", ()), ("/", "center", ("--take-over",))]
)
def test_a_member_pins_the_publisher_and_is_told_to_take_over(
    tmp_path, monkeypatch, at, role, more
):
    told = []

    async def runs(_place, _health, *, take_over):
        told.append(take_over)
        raise Started

    monkeypatch.setattr(run_centre, "run_here", runs)
    folders = {name: tmp_path / name for name in ("m1", "m2", "m3")}
    path = NodePath.parse(at)
    lay_out_members(folders, path.domain, TreeId("t" * 26), path, SystemDice(), PortPool())
    (tmp_path / "root.json").write_bytes(ROOTS.data)
    file = folders["m2"] / MEMBER_FILE
    done = leafcast("run", role, "--config", file, "--publisher", tmp_path / "root.json", *more)
    assert isinstance(done.exception, Started), done.output
    assert told == [bool(more)]
    assert pinned_publisher(file.parent).data == ROOTS.data
