"""`up --members 3`: a member of the centre or a region dies, and all acknowledged arrives."""

import os
import signal
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from leafcast.daemon.trios import MEMBER_NAMES
from relay.adapters.server.ports import free_port
from tests.awaiting import until
from tests.e2e.program import did
from tests.e2e.trio_program import Applies, TrioProgram, uids_at

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]
CENTRE, REGION = "centre", "lc_region-1"
MEMBERS = frozenset(MEMBER_NAMES)
SITE = "/region-1/site-1"


KEY = "k" * 44


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trios")
    program, key = TrioProgram(folder / "data"), folder / "store.key"
    key.write_text(KEY)
    key.chmod(0o600)
    shape, store = ("--regions", "1", "--sites", "1"), ("--store-key-file", str(key))
    did(program, "up", "--members", "3", *shape, *store, "--durability", "disk")
    did(program, "apply", "-f", "leafcast/shop")
    did(program, "wait", "shop", "--for", "synced")
    yield program
    did(program, "down")


def until_held(tree: TrioProgram, wanted: set[str]) -> dict[str, str]:
    """Wait until the edge holds these; their uids, and those of others."""

    def held() -> dict[str, str]:
        found = uids_at(tree, SITE)
        return found if wanted <= found.keys() else {}

    return until(held, lambda: f"{wanted - uids_at(tree, SITE).keys()} did not arrive")


def kill_the_active(tree: TrioProgram, node: str) -> None:
    tree.kill_active(node)


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


def test_backups_go_on_after_a_takeover_and_make_a_centre_of_three_members_elsewhere(
    tree, tmp_path
):
    key, to = str(tmp_path / "backup.key"), tmp_path / "backups"
    did(tree, "backup", "key", "new", key)
    did(tree, "backup", "--every", "1s", "--to", str(to))
    kill_the_active(tree, CENTRE)
    before = {it.name for it in to.glob("*.backup")}
    until(lambda: {it.name for it in to.glob("*.backup")} - before, "the timer did not go on")
    until(lambda: tree.run("backup", "--every", "off").returncode == 0, "it cannot be set")
    assert "a centre ran of it" in did(tree, "backup", "verify", str(to), "--key", key).stdout

    restored = TrioProgram(tmp_path / "restored")
    did(restored, "restore", str(to), "--key", key, "--members", "3")
    try:
        did(restored, "up")
        assert "the centre's streams are those of the backup" in restored.log(CENTRE, "m1")
        wanted, held = shop_at(tree), shop_at(restored)
        assert wanted
        assert wanted == held
        did(restored, "wait", "shop", "--for", "synced")
        # What ran on its machine is there again, with members and keys of its own.
        assert restored.until_active(REGION)
        assert uids_at(restored, SITE).keys() >= wanted.keys()
        assert did(restored, "orphans").stdout.startswith("No orphans")
    finally:
        did(restored, "down")


def shop_at(tree: TrioProgram) -> dict[str, str]:
    """What the centre has in the namespace shop: UIDs by name."""
    listed = tree.json("get", "configmaps", "-n", "shop")["items"]
    return {it["metadata"]["name"]: it["metadata"]["uid"] for it in listed}


@pytest.mark.long
def test_each_member_is_restarted_in_turn_as_the_doctor_says_that_it_may_be(tree, tmp_path):
    with Applies(tree, tmp_path) as applies:
        applies.more()
        before = until_held(tree, set(applies.acknowledged))
        for node, path in ((REGION, "/region-1"), (CENTRE, "/")):
            active = tree.until_active(node)
            # The active one last: else the node moves more often.
            for member in (*(MEMBERS - {active}), active):
                until(lambda path=path: tree.may_restart(path), lambda: tree.run("doctor").stdout)
                restart(tree, node, member)
        applies.more()
    after = until_held(tree, {*applies.acknowledged, *before})
    assert {name: after[name] for name in before} == before


def restart(tree: TrioProgram, node: str, member: str) -> None:
    """Have a member's process hand over and end; it is started again by itself."""
    former = tree.pid(node, member)
    os.kill(former, signal.SIGTERM)
    until(lambda: tree.pid(node, member) not in (0, former), "it is not started again")


def test_all_servers_of_a_tree_of_trios_keep_what_they_store_as_was_said(tree):
    configs = list(tree.place.folder.rglob("nats.conf"))
    assert len(configs) == 7
    for config in configs:
        said = config.read_text()
        assert "sync_interval: always" in said, config
        assert "LEAFCAST_STORE_KEY" in said, config
        assert KEY not in said
    blocks = list(tree.place.folder.rglob("msgs/*.blk"))
    assert blocks
    assert not [block for block in blocks if b"leafcast" in block.read_bytes()]


def test_the_process_that_keeps_the_members_says_whether_their_tree_is_ready(tmp_path):
    tree, port = TrioProgram(tmp_path / "data"), free_port(tmp_path, 7)
    did(tree, "up", "--members", "3", "--regions", "0", "--health-port", str(port))

    def said() -> str:
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.read().decode()
        except HTTPError as unready:
            return unready.read().decode()

    try:
        until(lambda: "[+]tree ok\n[+]members ok\n" in said(), said)
        for member in MEMBER_NAMES:
            os.kill(tree.pid(CENTRE, member), signal.SIGSTOP)
        until(lambda: "[-]members: no member of the centre said" in said(), said)
        for member in MEMBER_NAMES:
            os.kill(tree.pid(CENTRE, member), signal.SIGCONT)
        until(lambda: said().endswith("\nready\n"), said)
    finally:
        did(tree, "down")


def test_another_number_of_members_is_refused_with_the_remedy(tree):
    done = tree.run("up", "--members", "1")
    assert done.returncode == 1
    assert "--members 3, not 1" in done.stderr
    assert "--data-dir" in done.stderr


def test_what_a_tree_of_trios_cannot_have_is_refused_with_the_remedy(tmp_path):
    other, why = ("--listen", "centre.example"), "each member has one of its own"
    done = TrioProgram(tmp_path / "data").run("up", "--members", "3", *other)
    assert done.returncode == 2, done.stderr
    said = " ".join(done.stderr.split())
    assert f"cannot have {other[0]}: " in said
    assert why in said
    assert "--members 1" in said
