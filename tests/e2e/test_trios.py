"""`up --members 3`: a member of the centre or a region dies, and all acknowledged arrives."""

import json

import pytest

from tests.awaiting import until
from tests.e2e.program import Program, did
from tests.e2e.trio_program import Applies, TrioProgram

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]
CENTRE, REGION = "centre", "lc_region-1"
SITE = "/region-1/site-1"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    program = TrioProgram(tmp_path_factory.mktemp("trios") / "data")
    did(program, "up", "--members", "3", "--regions", "1", "--sites", "1")
    did(program, "apply", "-f", "leafcast/shop")
    did(program, "wait", "shop", "--for", "synced")
    yield program
    did(program, "down")


def uids(tree: TrioProgram) -> dict[str, str]:
    """Of the ConfigMaps that the edge holds; none while it cannot be asked."""
    done = tree.run("get", "configmaps", "-n", "shop", "--at", SITE, "-o", "json")
    found = json.loads(done.stdout)["items"] if done.returncode == 0 else ()
    return {it["metadata"]["name"]: it["metadata"]["uid"] for it in found}


def until_held(tree: TrioProgram, wanted: set[str]) -> dict[str, str]:
    """Wait until the edge holds these; their uids, and those of others."""

    def held() -> dict[str, str]:
        found = uids(tree)
        return found if wanted <= found.keys() else {}

    return until(held, lambda: f"{wanted - uids(tree).keys()} did not arrive")


def kill_the_active(tree: TrioProgram, node: str) -> None:
    former = tree.until_active(node)
    tree.kill(node, former)
    tree.until_active(node, beside=former)


def kill_a_server(tree: TrioProgram, node: str) -> None:
    """The one of the active member, who goes on or is followed by another."""
    tree.kill_server(node, tree.until_active(node))
    tree.until_active(node)


@pytest.mark.parametrize("node", [CENTRE, REGION])
@pytest.mark.parametrize("kill", [kill_the_active, kill_a_server])
def test_a_member_may_die_and_all_that_was_acknowledged_arrives(tree, tmp_path, node, kill):
    with Applies(tree, tmp_path) as applies:
        applies.more()
        before = until_held(tree, set(applies.acknowledged))
        kill(tree, node)
        applies.more()
    after = until_held(tree, {*applies.acknowledged, *before})
    assert {name: after[name] for name in before} == before
    did(tree, "wait", "shop", "--for", "synced")


def test_the_tree_shows_who_is_active_and_who_stands_by(tree):
    for node in (CENTRE, REGION):
        tree.until_active(node)

    def roles():
        nodes = tree.json("tree", "--members")["nodes"]
        found = {node["path"]: node["members"] for node in nodes if node["members"]}
        said = {path: sorted(it["role"] for it in members) for path, members in found.items()}
        leading = {path: [it["server"] for it in members] for path, members in found.items()}
        wanted = ["active", "standby", "standby"]
        is_led = all(servers.count("leads") == 1 for servers in leading.values())
        return is_led and said == {"/": wanted, "/region-1": wanted}

    until(roles, lambda: tree.run("tree", "--members").stdout)


def test_backups_go_on_after_a_takeover_and_make_a_centre_that_runs_once(tree, tmp_path):
    key, to = str(tmp_path / "backup.key"), tmp_path / "backups"
    did(tree, "backup", "key", "new", key)
    did(tree, "backup", "--every", "1s", "--to", str(to))
    kill_the_active(tree, CENTRE)
    before = {it.name for it in to.glob("*.backup")}
    until(lambda: {it.name for it in to.glob("*.backup")} - before, "the timer did not go on")
    until(lambda: tree.run("backup", "--every", "off").returncode == 0, "it cannot be set")
    assert "a centre ran of it" in did(tree, "backup", "verify", str(to), "--key", key).stdout

    alone = Program(tmp_path / "alone")
    did(alone, "restore", str(to), "--key", key)
    try:
        did(alone, "up")
        wanted, held = (it.json("get", "configmaps", "-n", "shop")["items"] for it in (tree, alone))
        uids = [
            {it["metadata"]["name"]: it["metadata"]["uid"] for it in each}
            for each in (wanted, held)
        ]
        assert uids[0]
        assert uids[0] == uids[1]
        assert "shop" in did(alone, "get", "edgeplacements").stdout
    finally:
        did(alone, "down")


def test_another_number_of_members_is_refused_with_the_remedy(tree):
    done = tree.run("up", "--members", "1")
    assert done.returncode == 1
    assert "--members 3, not 1" in done.stderr
    assert "--data-dir" in done.stderr


@pytest.mark.parametrize(
    "other", [("--kube",), ("--listen", "centre.example"), ("--store-key-file", "key")]
)
def test_what_a_tree_of_trios_cannot_have_yet_is_refused_by_name(tmp_path, other):
    (tmp_path / "key").write_text("k" * 44)
    said = [str(tmp_path / word) if word == "key" else word for word in other]
    done = TrioProgram(tmp_path / "data").run("up", "--members", "3", *said)
    assert done.returncode == 2, done.stderr
    assert f"cannot have {other[0]} yet" in done.stderr
