"""Where machines that are members of a node are reached, and what is refused there."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from click.testing import CliRunner

from leafcast.ask.api import ApiError
from leafcast.cli.commands.join import join
from leafcast.daemon.nodes.members_show import MembersShow
from leafcast.join.folder import MEMBER_REQUEST_FILE, JoinedFolder
from leafcast.join.invitation import Invitation
from leafcast.join.join_request import JoinFailed
from leafcast.join.joining_member import JoiningMember, member_reach, read_member_note
from leafcast.join.kept_grant import KeptGrant, write_grant
from leafcast.join.relay_member import RelayMember, relay_state
from leafcast.members.addresses import (
    ROUTE_PORT,
    HostRefused,
    MemberHost,
    apart,
    leaf_urls_of,
    member_host,
    misfit,
)
from leafcast.members.founding import founded, read_founding, settle
from leafcast.members.seats import MemberSeat, judged
from leafcast.members.settings import kept_member
from leafcast.node.credentials.account_seeds import new_seeds
from leafcast.node.credentials.certificates import IssuedCertificates
from leafcast.node.credentials.node_certificate import (
    CERTIFICATE_FILES,
    NodeCertificate,
)
from leafcast.node.known_children import KnownChildren
from leafcast.node.listen_settings import (
    ListenRefused,
    keep_listen_settings,
    kept_listen_settings,
    listen_settings,
)
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.enrolment.member_requests import MemberRequest
from schemas.enrolment.tokens import Token
from schemas.records.roots import Roots
from schemas.values.identity import NodePath, TreeId
from schemas.values.wire import replace as with_fields

TREE, EMEA, DICE = TreeId("a" * 26), NodePath.parse("/emea"), SystemDice()
NOW_MS = 1_750_000_000_000
HERE = MemberRequest(EMEA, b"k" * 32, "1.0", NOW_MS, "127.0.0.1", 1, 2, 3, "till")
AWAY = {
    name: with_fields(HERE, host=f"{name}.example", listens=(f"tls://{name}.example:7522",))
    for name in ("m1", "m2", "m3")
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("m2.example", MemberHost("m2.example")),
        ("10.0.0.7:6300", MemberHost("10.0.0.7", 6300)),
        ("fd00::7", MemberHost("fd00::7")),
        ("[fd00::7]:6300", MemberHost("fd00::7", 6300)),
        ("127.0.0.1", MemberHost()),
    ],
)
def test_a_host_is_named_with_a_port_or_not(text, found):
    assert member_host(text) == found


@pytest.mark.parametrize("text", ["", "a b", "m2:0", "m2:66000", "a@b", "::", "x/y", "M_.:x"])
def test_what_no_machine_can_call_is_refused_by_name(text):
    with pytest.raises(HostRefused) as refusal:
        member_host(text)
    assert refusal.value.what == text
    assert "m2.example:6222" in refusal.value.remedy


def test_a_start_line_that_names_one_address_has_the_other_follow():
    listens = listen_settings(["emea.example:7522"], "", "", "")
    assert member_reach("", listens).host == MemberHost("emea.example")
    assert member_reach("", listens).urls == ("tls://emea.example:7522",)
    assert member_reach("10.0.0.7", None).urls == ("tls://10.0.0.7:7422",)
    assert member_reach("", None).urls == ()


@pytest.mark.parametrize(
    ("host", "listen", "files", "said"),
    [
        ("", "wss://emea.example/leaf", "", "without --tls-cert"),
        ("", "emea.example", "/own.pem", "without --tls-cert"),
        ("127.0.0.1", "emea.example", "", "--member-host"),
    ],
)
def test_what_a_member_cannot_listen_with_is_refused_with_the_remedy(host, listen, files, said):
    with pytest.raises(ListenRefused, match=said):
        member_reach(host, listen_settings([listen], files, files, ""))


def test_one_port_for_children_and_for_the_other_members_is_refused():
    listens = listen_settings(["m1.example:7522"], "", "", "")
    with pytest.raises(HostRefused, match="port 7522") as refusal:
        member_reach("10.0.0.7:7522", listens)
    assert refusal.value.what == "10.0.0.7:7522"
    assert member_reach("10.0.0.7:7523", listens).host.port == 7523


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "no host"},
        {"listens": ("tls://m1.example:7522",)},
        {"host": "m1.example", "listens": ("nats://m1.example:7522",)},
        {"host": "m1.example", "listens": ("wss://m1.example/leaf",)},
        {"host": "m1.example", "route_port": 7522, "listens": ("tls://away.example:7522",)},
        {"host": "m1.example", "route_port": 7422, "leaf_port": 7422},
    ],
)
def test_a_machine_whose_addresses_nobody_can_be_told_is_refused(changed):
    asked = with_fields(HERE, **changed)
    assert misfit(asked)
    verdict = judged(MemberSeat(EMEA, "m1", b"", NOW_MS), asked, "1.0", NOW_MS)
    assert verdict.refused
    assert "--member-host" in verdict.remedy


def test_machines_on_a_network_and_one_that_keeps_to_itself_are_apart():
    assert apart(AWAY) == apart({"m1": HERE, "m2": HERE, "m3": HERE}) == ""
    assert "m2 can be reached on its own machine alone" in apart({**AWAY, "m2": HERE})


def test_members_on_a_network_show_one_certificate_for_all_their_hosts(tmp_path):
    showing = MembersShow(tmp_path, TREE, EMEA, AWAY)
    shown = showing.certificate(NOW_MS)
    assert shown is not None
    showing.keep(shown, NOW_MS)
    names = ("m1.example", "m2.example", "m3.example", "127.0.0.1")
    assert IssuedCertificates(tmp_path).names_of(EMEA) == names
    told = founded(TREE, EMEA, AWAY, shown, new_seeds(DICE), DICE, NOW_MS)
    folder = tmp_path / "m2"
    settle(read_founding(told["m2"].encoded()), bytes(32), folder, folder / "server")
    member = kept_member(folder)
    assert member is not None
    address = member.leaf_address(folder / "server")
    assert address is not None
    assert address.port == 7522
    assert address.urls == tuple(url for it in AWAY.values() for url in leaf_urls_of(it))
    assert member.others == ()
    assert NodeCertificate(folder / "server", names).there
    assert {f"lc_emea/{it}" for it in CERTIFICATE_FILES} <= set(relay_state(EMEA))


def test_members_on_one_machine_show_none(tmp_path):
    machines = dict.fromkeys(AWAY, HERE)
    assert MembersShow(tmp_path, TREE, EMEA, machines).certificate(NOW_MS) is None
    told = founded(TREE, EMEA, machines, None, new_seeds(DICE), DICE, NOW_MS)
    settle(told["m1"], bytes(32), tmp_path, tmp_path / "server")
    member = kept_member(tmp_path)
    assert member is not None
    assert member.leaf_address(tmp_path / "server") is None
    assert len(member.others) == 2


def test_a_name_of_the_centre_or_of_another_node_is_not_given_to_members(tmp_path):
    keep_listen_settings(tmp_path, listen_settings(["m3.example"], "", "", ""))
    with pytest.raises(ApiError, match=r"m3\.example, which is the centre's") as refusal:
        MembersShow(tmp_path, TREE, EMEA, AWAY).certificate(NOW_MS)
    assert "--member --replace" in refusal.value.remedy


def test_two_machines_with_one_address_are_refused(tmp_path):
    machines = {**AWAY, "m3": with_fields(AWAY["m3"], listens=AWAY["m2"].listens)}
    with pytest.raises(ApiError, match=r"tls://m2\.example:7522"):
        MembersShow(tmp_path, TREE, EMEA, machines).certificate(NOW_MS)


def test_a_route_to_where_children_dial_another_machine_is_refused(tmp_path):
    machines = {**AWAY, "m3": with_fields(AWAY["m3"], host="m2.example", route_port=7522)}
    with pytest.raises(ApiError, match=r"two machines .*m2\.example:7522"):
        MembersShow(tmp_path, TREE, EMEA, machines).certificate(NOW_MS)


def test_a_centre_says_at_all_its_members_that_it_listens(tmp_path):
    keep_listen_settings(tmp_path, listen_settings(["m1.example:7522"], "", "", ""))
    showing = MembersShow(tmp_path, TREE, NodePath(), AWAY)
    showing.keep(showing.certificate(NOW_MS), NOW_MS)
    kept = kept_listen_settings(tmp_path)
    assert kept is not None
    assert kept.urls == showing.urls
    assert kept.of_members
    assert kept.served_names[-2:] == ("m3.example", "127.0.0.1")


def granted_relay(tmp_path, clock):
    told = founded(TREE, EMEA, dict.fromkeys(AWAY, HERE), None, new_seeds(DICE), DICE, NOW_MS)
    settle(told["m1"], bytes(32), tmp_path, tmp_path / "lc_emea")
    settings = kept_member(tmp_path)
    assert settings is not None
    grant = KeptGrant(
        TREE,
        EMEA,
        relay=True,
        parents=("tls://centre.example:7422",),
        seed=new_user_nkey(DICE.entropy(32))[0],
        roots=Roots({"k" * 26: b"p" * 32}),
        authorities="PEM",
    )
    write_grant(tmp_path / "bundle.json", grant)
    return RelayMember(tmp_path, settings, clock, DICE), grant


def test_a_relay_of_members_believes_at_its_parent_whom_it_was_granted(tmp_path):
    relay, grant = granted_relay(tmp_path, SystemClock())
    parent = relay.neighbours().parent
    assert parent is not None
    assert parent.authorities is not None
    assert Path(parent.authorities).read_text(encoding="utf-8") == "PEM"
    assert asdict(parent)["urls"] == grant.parents
    # Taken as it was active, and not in the state of its node before another member was.
    Path(parent.authorities).write_text("LATER", encoding="utf-8")
    assert relay.neighbours().parent == parent
    assert Path(parent.authorities).read_text(encoding="utf-8") == "PEM"


class StopAfter:
    """A clock that ends the run after some looks."""

    def __init__(self, looks):
        self.left = looks

    def now(self):
        return SimpleNamespace(seconds=0.0)

    async def sleep(self, seconds):
        self.left -= 1
        if self.left == 0:
            raise StopLooking


class StopLooking(Exception):
    pass


class DownAtFirst:
    def __init__(self):
        self.dialled = []

    async def dial(self, urls):
        self.dialled.append(urls)
        if len(self.dialled) == 1:
            raise ServerFailed("it is down", [])


async def test_a_server_that_failed_to_dial_what_its_relay_learnt_is_told_again(tmp_path):
    relay, grant = granted_relay(tmp_path, StopAfter(4))
    told = "tls://other.example:7422"
    runtime = SimpleNamespace(
        node=SimpleNamespace(ready=True, parent_addresses=(told,)), running=AsyncMock()
    )
    server = DownAtFirst()
    with pytest.raises(StopLooking):
        await relay._learn(runtime, server, grant.dialled)
    assert server.dialled == [(*grant.parents, told)] * 2


def member_of_relay(tmp_path, host, listen):
    """A machine on which the relay ran, with a child, that is to be one of its members."""
    folder = JoinedFolder(tmp_path, TREE, EMEA, "h" * 26)
    folder.keep()
    folder.node_folder.mkdir()
    KnownChildren(folder.node_folder).put("s1", "U")
    token = Token(b"s" * 16, TREE, b"p" * 16, EMEA, member=True)
    invited = Invitation(("tls://centre.example:7422",), token, EMEA)
    reach = member_reach(host, listen_settings(listen.split(), "", "", "") if listen else None)
    return JoiningMember(invited, tmp_path, reach, SystemClock(), DICE, print), folder


@pytest.mark.parametrize(
    ("certified", "host", "listen", "said"),
    [
        ("", "m1.example", "", "in clear, on this machine alone"),
        ("emea.example", "", "", "its children dial emea.example"),
        ("emea.example", "m1.example", "", "its children dial emea.example"),
    ],
)
async def test_a_relay_does_not_leave_its_children_behind(tmp_path, certified, host, listen, said):
    member, folder = member_of_relay(tmp_path, host, listen)
    if certified:
        names = (certified, "127.0.0.1")
        NodeCertificate(folder.node_folder, names).keep("key", "PEM", "PEM")
    with pytest.raises(JoinFailed, match=said):
        await member.run()


@pytest.mark.parametrize(
    ("had", "files", "host", "listen", "said"),
    [
        ("emea.example:7522", "", "", "emea.example:7523", "its children dial .*:7522"),
        ("emea.example:7522", "", "emea.example", "", "its children dial .*:7522"),
        ("emea.example:7522", "", "", "", "its children dial .*:7522"),
        (
            "emea.example:7522 nat.example:443",
            "",
            "",
            "nat.example:443 emea.example:7522",
            "its children dial",
        ),
        ("wss://emea.example/leaf", "", "", "", "where the certificate is yours"),
        (
            "emea.example:7522",
            "/own.pem",
            "",
            "emea.example:7522",
            "where the certificate is yours",
        ),
    ],
)
async def test_a_relay_goes_on_where_its_children_dial(tmp_path, had, files, host, listen, said):
    member, folder = member_of_relay(tmp_path, host, listen)
    keep_listen_settings(folder.folder, listen_settings(had.split(), files, files, ""))
    with pytest.raises(JoinFailed, match=said):
        await member.run()


@pytest.mark.parametrize("listen", ["emea.example:7522", "emea.example:7522 m1.example:9000"])
def test_a_relay_that_listens_where_its_children_dial_may_become_a_member(tmp_path, listen):
    member, folder = member_of_relay(tmp_path, "", listen)
    keep_listen_settings(folder.folder, listen_settings(["emea.example:7522"], "", "", ""))
    member._check_children()


def test_a_relay_that_listens_no_more_says_so_in_its_folder(tmp_path):
    keep_listen_settings(tmp_path, listen_settings(["emea.example"], "", "", ""))
    keep_listen_settings(tmp_path, None)
    assert kept_listen_settings(tmp_path) is None


def test_a_machine_that_says_another_address_gets_a_port_for_that(tmp_path):
    here, _ = member_of_relay(tmp_path, "", "")
    asked = here._remembered()
    assert asked.route_port != ROUTE_PORT

    def again(host, listen):
        token = Token(b"s" * 16, TREE, b"p" * 16, EMEA, member=True)
        invited = Invitation(("tls://centre.example:7422",), token, EMEA)
        reach = member_reach(host, listen_settings([listen], "", "", "") if listen else None)
        return JoiningMember(invited, tmp_path, reach, SystemClock(), DICE, print)._remembered()

    away = again("m1.example", "")
    assert away.host == "m1.example"
    assert (away.key, away.client_port, away.leaf_port) == (
        asked.key,
        asked.client_port,
        asked.leaf_port,
    )
    assert away == again("m1.example", "")
    # It would be the one at which it listens for children.
    taken = again("m1.example", f"m1.example:{away.route_port}")
    assert taken.route_port != away.route_port


def test_a_note_of_a_request_without_ports_counts_for_nothing(tmp_path):
    member, folder = member_of_relay(tmp_path, "", "")
    member._remembered()
    file = folder.folder / MEMBER_REQUEST_FILE
    assert read_member_note(file) is not None
    file.write_text(json.dumps({**json.loads(file.read_text()), "route_port": []}))
    assert read_member_note(file) is None
    assert member._remembered().route_port


@pytest.mark.parametrize(
    "words", [("--proxy", "http://p.example:1"), ("--simulated",), ("--take-over",)]
)
def test_what_no_member_has_is_refused_by_name_at_join(words):
    token = Token(b"s" * 16, TREE, b"p" * 16, EMEA, member=True)
    told = CliRunner().invoke(
        join, ["tls://centre.example:7422", *words], env={"LEAFCAST_TOKEN": token.text}
    )
    assert told.exit_code == 2
    assert words[0] in told.output
