"""Spaces of a centre of several members: where they are laid out, and what keeps a member back."""

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from leafcast.centre.copying import FILE as COPYING_FILE
from leafcast.centre.copying import Copying, end_copying, keep_copying
from leafcast.cli.commands.up import up
from leafcast.daemon import local_daemon
from leafcast.daemon.centre_member import CENTRE_STATE, CentreMember
from leafcast.daemon.trios import TrioPlaces
from leafcast.data_dir import MEMBER_FILE, DataDir
from leafcast.doctor.findings import DoctorFacts, NodeFacts
from leafcast.doctor.member_checks import member_checks
from leafcast.local.views import TreeShape
from leafcast.members.state_files import StateFiles
from leafcast.node.member_forms import UNFIT, member_forms
from leafcast.space_settings import EMBEDDED, CentreSpaces, SpaceSetting
from relay.adapters.clock import SystemDice
from relay.adapters.jetstream.member_servers import MemberServer
from relay.adapters.jetstream.publish import WINDOW_MESSAGES
from schemas.values.identity import NodePath

KUBECONFIG = {
    "clusters": [{"name": "hub", "cluster": {"server": "https://127.0.0.1:1"}}],
    "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "me"}}],
    "users": [{"name": "me", "user": {"token": "t"}}],
    "current-context": "hub",
}


@pytest.fixture
def hub(tmp_path):
    """Spaces of which one is an API server, by a file that is not there yet."""
    return CentreSpaces((SpaceSetting("kubeconfig", str(tmp_path / "hub.yaml")),), (EMBEDDED,))


def member_at(place):
    settings = SimpleNamespace(name="m1")
    (place.keys).mkdir(parents=True, exist_ok=True)
    (place.keys / "keys.json").touch()
    return CentreMember(place, settings, None, SystemDice(), None)


def doctor_facts(members):
    nodes = [NodeFacts("/", "centre", "up", members=members)]
    return DoctorFacts(now_ms=0, folder="x", free_bytes=1, nodes=nodes)


def test_all_members_of_a_tree_here_are_laid_out_with_the_spaces_that_were_named(tmp_path, hub):
    place, shape = DataDir(tmp_path / "tree"), TreeShape(0, 1, 3)
    place.folder.mkdir()
    place.write_spaces(hub)
    places = TrioPlaces(place, shape)
    places.lay_out(SystemDice())
    kept = [DataDir(it.folder).spaces() for it in places.members(NodePath())]
    assert kept == [hub] * 3
    assert "spaces.json" in CENTRE_STATE


def test_a_member_without_the_kubeconfig_of_a_space_is_not_active_and_names_the_file(tmp_path, hub):
    place = DataDir(tmp_path / "m1")
    member = member_at(place)
    assert member.why_not() == ""
    place.write_spaces(hub)
    file = hub.workloads[0].kubeconfig
    why = member.why_not()
    lacks = "there is no such file: put it there, as on the other machines"
    assert why == member.facts()[UNFIT] == f"{file} cannot be opened on this machine: {lacks}"
    (tmp_path / "hub.yaml").write_text(json.dumps(KUBECONFIG))
    assert member.why_not() == member.facts()[UNFIT] == ""


@pytest.mark.parametrize("restored", [False, True])
def test_a_member_that_waits_for_a_copy_says_so_and_what_to_do_until_that_has_ended(
    tmp_path, restored
):
    place = DataDir(tmp_path / "m2")
    member = member_at(place)
    member._settings = SimpleNamespace(name="m2")
    keep_copying(place.folder, Copying("m1", restored=restored))
    what = "restores the backup of" if restored else "copies what"
    assert member.why_not() == member.facts()[UNFIT]
    said = {"m1": {"role": "active"}, "m2": {"role": "standby", **member.facts()}}
    members = member_forms(said, [MemberServer("m2")])
    failed = next(it for it in member_checks(doctor_facts(members)) if "m2" in it.said)
    assert failed.said.startswith(f"member m2 of / does not become active: member m1 {what}")
    assert failed.remedy.startswith("start it; if it is lost for good, ")
    assert member.kept_back_by() == COPYING_FILE
    end_copying(place.folder)
    assert member.why_not() == member.facts()[UNFIT] == member.kept_back_by() == ""


def test_who_copies_or_may_never_be_active_again_waits_for_nobody_to_end_it(tmp_path):
    place = DataDir(tmp_path / "m1")
    member = member_at(place)
    for copying in (Copying("m1"), Copying("m2", alone=True)):
        keep_copying(place.folder, copying)
        assert member.kept_back_by() == ""


def test_who_knows_any_of_a_centres_state_knows_who_copies_it(tmp_path):
    """It is written in batches, of which each is there whole or not at all."""
    place = DataDir(tmp_path / "m1")
    member_at(place)
    (place.folder / "tokens").mkdir()
    for number in range(WINDOW_MESSAGES):
        (place.folder / "tokens" / f"{number}.json").touch()
    keep_copying(place.folder, Copying("m1"))
    changes = StateFiles(place.folder, CENTRE_STATE).changes()
    assert len(changes) > WINDOW_MESSAGES
    assert next(iter(changes)) == COPYING_FILE


def test_a_hub_of_another_tree_is_taken_in_the_first_tenure_alone(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(local_daemon, "Daemon", lambda _, options: told.append(options.take_over))
    monkeypatch.setattr(local_daemon, "Member", lambda _settings, node, *_: node)
    settings = SimpleNamespace(name="m1")
    node = local_daemon.centre_member(DataDir(tmp_path), settings, take_over=True)
    for _ in range(3):
        node._centre_of(SimpleNamespace(follows=False), None)
    assert told == [True, False, False]


def test_who_stood_by_while_another_one_was_told_to_take_a_hub_takes_none_later(
    tmp_path, monkeypatch
):
    told = []
    monkeypatch.setattr(local_daemon, "Daemon", lambda _, options: told.append(options.take_over))
    monkeypatch.setattr(local_daemon, "Member", lambda _settings, node, *_: node)
    settings = SimpleNamespace(name="m2")
    node = local_daemon.centre_member(DataDir(tmp_path), settings, take_over=True)
    node._centre_of(SimpleNamespace(follows=True), None)
    assert told == [False]


async def test_a_hub_is_taken_once_though_the_centre_becomes_of_members_after_that(
    tmp_path, monkeypatch
):
    told, place = [], DataDir(tmp_path)

    class Run:
        async def run(self):
            if len(told) == 3:
                raise TimeoutError

    def begin(*_, take_over, **__):
        told.append(take_over)
        # It grows: the folder is a member's from now on.
        settings = iter([SimpleNamespace(name="m1"), None])
        monkeypatch.setattr(local_daemon, "kept_member", lambda _: next(settings, None))
        return Run()

    monkeypatch.setattr(local_daemon, "kept_member", lambda _: None)
    monkeypatch.setattr(local_daemon, "local_daemon", begin)
    monkeypatch.setattr(local_daemon, "centre_member", begin)
    monkeypatch.setattr(local_daemon, "is_moving_in", lambda *_: False)
    with pytest.raises(ExceptionGroup):
        await local_daemon._run_centre(place, TreeShape(0, 1, 3), None, take_over=True)
    assert told == [True, False, False]


@pytest.mark.parametrize("form", ["trios", "member"])
def test_a_centre_of_members_keeps_the_spaces_that_it_was_made_with(tmp_path, hub, form):
    place = DataDir(tmp_path / "tree")
    place.folder.mkdir(mode=0o700)
    place.write_tree({"shape": [0, 3, 3], **({"members": 3} if form == "trios" else {})})
    if form == "member":
        (place.folder / MEMBER_FILE).touch()
    place.write_spaces(hub)
    words = ("--data-dir", str(place.folder), "--workloads-kubeconfig", "other.yaml")
    told = CliRunner().invoke(up, words)
    assert told.exit_code == 1
    assert f"was made with {hub.workloads[0].kubeconfig}, the embedded space" in told.output
    assert place.spaces() == hub
