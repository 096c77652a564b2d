"""Another machine takes the place of a lost member: what each member has at each step."""

import itertools
from dataclasses import replace

import pytest
from nacl.public import PrivateKey

from leafcast.members.founding import LeafCertificate, founded, read_founding, settle
from leafcast.members.membership import (
    DONE,
    FILE,
    LEFT,
    REMOVED,
    SHOWN,
    TRUSTED,
    MembershipDamaged,
    kept_membership,
    next_name,
    read_membership,
)
from leafcast.members.newcomers import (
    Survivors,
    authority_name,
    begun,
    check_replaceable,
    members_in,
    name_for,
    shown_request,
    told,
)
from leafcast.members.settings import kept_member
from leafcast.members.steps import Replaced, carry_out, forget_routes
from leafcast.node.credentials.account_seeds import new_seeds
from leafcast.node.member_change import ReplacementRefused
from leafcast.node.member_forms import member_forms
from relay.adapters.clock import SystemDice
from relay.adapters.jetstream.cluster_peers import behind_in, lacking_in, peer_id, peers_in
from relay.adapters.jetstream.member_servers import MemberServer
from relay.adapters.tls.authority import requested_names, signed_by
from schemas.enrolment.member_requests import MemberRequest
from schemas.values.identity import NodePath, TreeId
from schemas.values.wire import replace as with_fields

DICE, TREE, PATH = SystemDice(), TreeId("t" * 26), NodePath.parse("/emea")
NOW_MS = 1_800_000_000_000
NAMES, LEFT_OVER = ("m1", "m2", "m3"), ("m1", "m3")
KEYS = {name: PrivateKey(bytes([number]) * 32) for number, name in enumerate((*NAMES, "m4"), 1)}


def machine(name, host=""):
    number = int(name[1:])
    return MemberRequest(
        PATH,
        bytes(KEYS[name].public_key),
        "1.0",
        NOW_MS,
        host or f"{name}.example",
        6222,
        7000 + number,
        8000 + number,
        listens=(f"tls://{host or name}.example:7522",),
    )


@pytest.fixture
def region(tmp_path):
    """The folders of a region's three members, each on a machine of its own."""
    shown, machines = LeafCertificate("PEM", "key", "PEM"), {name: machine(name) for name in NAMES}
    made = founded(TREE, PATH, machines, shown, new_seeds(DICE), DICE, NOW_MS)
    for name in NAMES:
        (tmp_path / name).mkdir()
        settle(made[name], bytes(KEYS[name]), tmp_path / name, tmp_path / name / "lc_emea")
    return {name: tmp_path / name for name in NAMES}


def begin(region, lost="m2", asked=None, kept=None):
    """The change as m1 begins it."""
    settings = kept_member(region["m1"])
    there = Survivors(
        {name: (f"{name}.example", 6222) for name in settings.keys},
        {name: (f"tls://{name}.example:7522",) for name in settings.keys},
    )
    before = settings.cluster.tls.authorities.read_text()
    asked = asked or machine("m4")
    return begun(settings, kept, lost, asked, there, before, NOW_MS)


def at(region, name, change, step):
    """A member once it carried out a step."""
    done = carry_out(region[name], kept_member(region[name]), change.at(step))
    assert kept_member(region[name]) == done
    return done


def believes(one, other):
    """Whether a member lets another one in at its routes."""
    shown = other.cluster.tls.files.certificate.read_text()
    believed = one.cluster.tls.authorities.read_text()
    begins = "-----BEGIN CERTIFICATE-----"
    each = [begins + it for it in believed.split(begins) if it.strip()]
    return any(signed_by(shown, it) for it in each)


@pytest.mark.parametrize("step", [TRUSTED, SHOWN, LEFT, REMOVED, DONE])
@pytest.mark.parametrize("first", LEFT_OVER)
def test_at_each_step_the_members_that_are_left_believe_each_other(region, first, step):
    change = begin(region)
    other = next(name for name in LEFT_OVER if name != first)
    lost = kept_member(region["m2"])
    for done in range(TRUSTED, step):
        for name in LEFT_OVER:
            at(region, name, change, done)
    here, there = at(region, first, change, step), kept_member(region[other])
    assert believes(here, there)
    assert believes(there, here)
    there = at(region, other, change, step)
    assert believes(here, there)
    assert believes(there, here)
    # The lost one is let in for as long as its server may still count.
    assert believes(here, lost) is (step < LEFT)
    assert believes(lost, here) is (step < SHOWN)


def test_the_new_member_is_believed_by_the_others_and_knows_them(region, tmp_path):
    change = begin(region)
    assert requested_names(shown_request(change)) == (
        "m1.example",
        "m3.example",
        "m4.example",
        "127.0.0.1",
    )
    change = replace(change, shown=replace(change.shown, certificate="PEM", authorities="PEM"))
    for step in (TRUSTED, SHOWN, LEFT):
        others = [at(region, name, change, step) for name in LEFT_OVER]
    founding = read_founding(told(others[0], change, new_seeds(DICE)).encoded())
    folder = tmp_path / "m4"
    folder.mkdir()
    settle(founding, bytes(KEYS["m4"]), folder, folder / "lc_emea")
    region["m4"] = folder
    before = kept_member(folder)
    assert (before.name, before.applied) == ("m4", (1, LEFT))
    new = at(region, "m4", change, REMOVED)
    assert all(believes(new, it) and believes(it, new) for it in others)
    assert not believes(new, kept_member(region["m2"]))
    assert new.cluster.routes == ("m1.example:6222", "m3.example:6222")
    assert others[0].cluster.routes == ("m3.example:6222", "m4.example:6222")
    members = [at(region, name, change, DONE) for name in ("m1", "m3", "m4")]
    assert {it.leaf_urls for it in members} == {
        tuple(f"tls://{name}.example:7522" for name in ("m1", "m3", "m4"))
    }
    assert {tuple(it.keys) for it in members} == {("m1", "m3", "m4")}
    assert len({it.cluster.password for it in members}) == 1


def test_children_are_told_of_the_new_member_once_it_is_done_and_no_sooner(region):
    change, before = begin(region), kept_member(region["m1"]).leaf_urls
    for step in (TRUSTED, SHOWN, LEFT, REMOVED):
        assert at(region, "m1", change, step).leaf_urls == before
    assert "tls://m2.example:7522" not in at(region, "m1", change, DONE).leaf_urls


def test_what_is_shared_is_sealed_to_the_lost_one_at_no_step(region):
    change = begin(region)
    assert change.keys == {name: bytes(KEYS[name].public_key) for name in ("m1", "m3", "m4")}
    for step in (TRUSTED, SHOWN, LEFT, REMOVED, DONE):
        assert at(region, "m1", change, step).keys == change.keys


def test_a_step_is_carried_out_once_and_what_it_needs_no_more_goes(region):
    change, folder = begin(region), region["m1"]
    settings = kept_member(folder)
    for step, twice in itertools.product((TRUSTED, SHOWN, LEFT, REMOVED, DONE), range(2)):
        settings = carry_out(folder, settings, change.at(step))
        forget_routes(folder, settings)
        places = [it.name for it in folder.glob("routes*")]
        assert places == [f"routes-1-{min(step, LEFT)}"], twice
    # What another member wrote before that changes nothing any more.
    assert carry_out(folder, settings, change.at(SHOWN)) == settings


def test_the_lost_one_is_told_that_it_is_none_by_name(region):
    change = begin(region)
    with pytest.raises(Replaced, match=r"m2 is no member of /emea any more, .* m1, m3, m4"):
        carry_out(region["m2"], kept_member(region["m2"]), change.at(TRUSTED))


def test_who_signs_for_the_routes_says_whose_they_are():
    name = authority_name(["m1", "m3", "m4"], "/emea", TREE)
    assert members_in(name[:64]) == ("m1", "m3", "m4")
    assert members_in(f"members of /emea of {TREE}") == ()
    assert members_in("") == ()


def test_the_file_is_read_as_it_was_written_and_a_damaged_one_is_named(region, tmp_path):
    change = begin(region).at(SHOWN)
    assert read_membership(change.text().encode()) == change
    assert kept_membership(tmp_path) is None
    (tmp_path / FILE).write_text(change.text().replace('"came": "m4"', '"came": "m9"'))
    with pytest.raises(MembershipDamaged, match="remove it"):
        kept_membership(tmp_path)


def test_no_name_is_given_twice(region):
    assert next_name(["m1", "m2", "m3"]) == "m4"
    assert next_name(["m1", "m7", "machine"]) == "m8"
    change = begin(region)
    for step in (TRUSTED, SHOWN, LEFT, REMOVED, DONE):
        settings = at(region, "m1", change, step)
    assert name_for(settings, change) == "m5"
    asked = with_fields(machine("m4", "m5"), key=b"k" * 32)
    second = begin(region, lost="m4", asked=asked, kept=change.at(DONE))
    assert (second.came, second.former) == ("m5", ("m2", "m4"))


def check(settings, change, lost, roles, running=()):
    """As the active member does: of who is silent the server is gone, unless it is said to run."""
    facts = {name: {"role": role} for name, role in roles.items() if role}
    servers = [MemberServer(name, leads=name == "m1") for name in roles]
    check_replaceable(settings, change, lost, member_forms(facts, servers), {*facts, *running})


GONE = {"m1": "active", "m2": "", "m3": "standby"}
LEFT_ROLES = {"m1": "active", "m3": "standby"}


@pytest.mark.parametrize(
    ("lost", "roles", "says"),
    [
        ("m2", {**GONE, "m2": "standby"}, "m2 of /emea runs, and is heard; .* end it first"),
        ("m9", GONE, "/emea has no member 'm9'; its members are m1, m2, m3"),
        ("m2", {**GONE, "m3": ""}, "m3 of /emea is not there, .* both others must be well"),
    ],
)
def test_who_is_not_lost_is_not_replaced_nor_while_another_one_is_away(region, lost, roles, says):
    settings = kept_member(region["m1"])
    with pytest.raises(ReplacementRefused, match=says):
        check(settings, None, lost, roles)
    check(settings, None, "m2", GONE)


def test_a_server_that_runs_without_its_process_is_not_lost(region):
    with pytest.raises(ReplacementRefused, match="process and server"):
        check(kept_member(region["m1"]), None, "m2", GONE, running=["m2"])


def test_one_change_at_a_time_but_a_machine_that_never_came_is_replaced(region):
    change = begin(region)
    settings = at(region, "m1", change, TRUSTED)
    with pytest.raises(ReplacementRefused, match="under way: m4 comes in the place of m2"):
        check(settings, change, "m2", GONE)
    for step in (SHOWN, LEFT, REMOVED):
        settings = at(region, "m1", change, step)
    waits = change.at(REMOVED)
    check(settings, waits, "m4", LEFT_ROLES)
    with pytest.raises(ReplacementRefused, match="under way"):
        check(settings, waits, "m3", LEFT_ROLES)
    settings = at(region, "m1", change, DONE)
    with pytest.raises(ReplacementRefused, match="has the place of m2 of /emea already"):
        check(settings, change.at(DONE), "m2", LEFT_ROLES)


def test_members_of_a_tree_on_one_machine_without_certificates_are_not_replaced(region):
    settings = kept_member(region["m1"])
    cluster = replace(settings.cluster, tls=None, host="127.0.0.1", routes=("127.0.0.1:1",) * 2)
    bare = replace(settings, cluster=cluster)
    with pytest.raises(ReplacementRefused, match="no certificates; start the lost process again"):
        check(bare, None, "m2", GONE)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (with_fields(machine("m4"), host="127.0.0.1", listens=()), "unlike this one"),
        (machine("m4", "m3"), "another member of /emea is reached at"),
    ],
)
def test_a_machine_that_the_others_cannot_tell_or_reach_is_refused(region, asked, says):
    with pytest.raises(ReplacementRefused, match=says):
        begin(region, asked=asked)


def test_how_far_it_is_is_said_of_both_and_of_nobody_else(region):
    change = begin(region)
    forms = member_forms({}, [MemberServer("m1", leads=True)], change)
    said = {it["name"]: it["change"] for it in forms}
    assert said["m1"] == ""
    assert said["m2"] == said["m4"] == change.said != ""
    assert change.at(DONE).said == ""


def test_a_cluster_without_a_leader_does_not_say_whom_it_counts():
    led = {"leader": "n.m1", "replicas": [{"name": "n.m2"}, {"name": "n.m3"}]}
    follows = {"leader": "n.m1"}
    each = {"n.m1": {"meta_cluster": led}, "n.m3": {"meta_cluster": follows}}
    assert peers_in(each) == {peer_id(it) for it in ("n.m1", "n.m2", "n.m3")}
    assert peers_in({"n.m3": {"meta_cluster": follows}, "n.m1": {}}) is None


def test_a_lost_server_is_counted_also_by_one_that_was_started_since_and_never_heard_its_name():
    # As nats-server says it of r.m2.
    assert peer_id("r.m2") == "kRABnpn7"
    unheard = "Server name unknown at this time (peerID: kRABnpn7)"
    led = {"leader": "r.m1", "replicas": [{"name": unheard, "peer": "kRABnpn7"}]}
    assert peers_in({"r.m1": {"meta_cluster": led}}) == {peer_id("r.m1"), peer_id("r.m2")}


def streams(*each):
    return {"account_details": [{"name": "RELAY", "stream_detail": list(each)}]}


def test_a_stream_that_nobody_placed_at_the_new_server_is_found_with_those_that_it_counts():
    def stream(name, replicas, *others):
        cluster = {"leader": "m1", "replicas": [{"name": it} for it in others]}
        return {"name": name, "config": {"num_replicas": replicas}, "cluster": cluster}

    each = streams(
        stream("OWN", 3, "m2", "m3"),
        stream("MAIL", 3, "m3"),
        stream("STAT", 3, "m3", "m4"),
        stream("LEASE", 2, "m3"),
    )
    found = lacking_in({"m1": each, "m3": streams()}, "m4", 3)
    assert [(it.account, it.stream) for it in found] == [("RELAY", "OWN"), ("RELAY", "MAIL")]
    assert [it.counts for it in found] == [
        {peer_id("m1"), peer_id("m2"), peer_id("m3")},
        {peer_id("m1"), peer_id("m3")},
    ]


def test_a_stream_is_whole_once_its_leader_says_so_of_the_server():
    def replica(name, **more):
        return {"name": name, "current": True, **more}

    def stream(name, leader, *replicas):
        return {"name": name, "cluster": {"leader": leader, "replicas": list(replicas)}}

    whole = stream("OWN", "m1", replica("m3"), replica("m4"))
    answers = {"m1": streams(whole), "m4": streams(stream("OWN", "m1"))}
    assert behind_in(answers, "m4") == []
    assert behind_in(answers, "m1") == []
    late = stream("MAIL", "m3", replica("m1"), replica("m4", current=False))
    away = stream("STATE", "m3", replica("m4", offline=True))
    fewer, unled = stream("BLOB", "m3", replica("m1")), stream("STAT", "")
    answers = {"m1": streams(whole), "m3": streams(late, away, fewer, unled)}
    assert behind_in(answers, "m4") == [
        "BLOB of RELAY",
        "MAIL of RELAY",
        "STAT of RELAY",
        "STATE of RELAY",
    ]
