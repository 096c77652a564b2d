"""How far a release goes: relays before edges, wave by wave, and only as far as it is good."""

import pytest

from controllers.core.rollout.release_failed import with_way_back
from controllers.core.rollout.release_holders import with_holders
from controllers.core.rollout.release_steps import (
    next_step,
    release_members,
    release_waves,
    wave_statuses,
)
from controllers.core.workloads.releases import LeafcastReleases
from leafcast.ask.session import CallFailed
from leafcast.cli.commands.upgrade import attempt_to_begin, check_takes_nobody_back
from schemas.api.leafcast_release import LeafcastReleaseSpec
from schemas.api.parsing import parse_wish
from schemas.records.records import NodeRecord, Profile, Source
from schemas.reports.running import Running, RunningCount, merged
from schemas.values.faults import InvalidObject
from schemas.values.identity import DestinationId, NodePath
from tests.unit.releases_world import PIECES, leafcast_release, sha256, signed_manifest

OTHER = {"linux-amd64": b"another wheel"}

EDGES = ("/emea/de/s1", "/emea/s2", "/apac/s3")
RELAYS = ("/emea", "/emea/de", "/apac")


def records():
    for text in EDGES:
        path = NodePath.parse(text)
        source = Source("edge.kubestellar.io/SyncTarget", "inv", "", path.name)
        labels = {"canary": "true"} if path.name == "s1" else {}
        yield Profile(source, 1, "", "", DestinationId(path.name), path, labels, {}, {})
    for text in (*EDGES, *RELAYS):
        path = NodePath.parse(text)
        yield NodeRecord(Source("leafcast.io/Node", "t", "", text), 1, "", "", path, "U")


def spec(*waves, **more):
    canary = {"name": "canary", "selector": {"matchLabels": {"canary": "true"}}}
    waves = list(waves) or [canary, {"name": "rest", "percent": 100}]
    form = {"version": "9.0.0", "manifest": "{}", "waves": waves, **more}
    return LeafcastReleaseSpec.model_validate(form, by_alias=True)


def says(wave, **states):
    return Running(
        tuple(
            RunningCount("v", "9.0.0", wave, state.replace("_", "-"), count)
            for state, count in states.items()
        )
    )


def run(release, said, opened=(), since=None, now=0):
    members = release_members(release_waves(release), records())
    return next_step(release, members, opened, said, since, now)


def test_a_node_counts_in_the_first_wave_that_admits_it_and_a_relay_with_those_below_it():
    first, second = release_members(release_waves(spec()), records())
    assert (first.relays, first.edges) == ({1: 1, 2: 1}, 1)
    assert (second.relays, second.edges) == ({1: 1}, 2)


def test_relays_go_before_edges_from_the_centre_down_and_waves_in_their_order():
    release, opened, seen = spec(), (), []
    for healthy in (0, 1, 2, 3):
        step = run(release, merged([says(1, healthy=healthy)] if healthy else []), opened)
        opened = step.waves
        seen.append([(it.number, it.relays, it.edges) for it in opened])
    assert seen == [
        [(1, 1, False)],
        [(1, 2, False)],
        [(1, 255, True)],
        [(1, 255, True), (2, 1, False)],
    ]
    done = run(release, merged([says(1, healthy=3), says(2, healthy=1)]), opened)
    last = run(release, merged([says(1, healthy=3), says(2, healthy=3)]), done.waves)
    assert (done.waves[-1].edges, last.phase) == (True, "Complete")


def test_of_whom_may_not_begin_yet_nothing_is_missed():
    release = spec()
    members = release_members(release_waves(release), records())

    def unheard(said, opened=()):
        step = run(release, said, opened)
        statuses = wave_statuses(release, members, step, said)
        return [(it.phase, it.members, it.failed, it.unheard) for it in statuses]

    assert unheard(Running()) == [("Progressing", 3, 0, 1), ("Pending", 3, 0, 0)]
    first = run(release, Running()).waves
    failed = unheard(says(1, rolled_back=1), first)
    assert failed == [("Failed", 3, 1, 0), ("Pending", 3, 0, 0)]
    # The edges may begin, and one of the three was heard.
    opened = release_waves(release)[:1]
    assert unheard(says(1, fetching=1), opened)[0] == ("Progressing", 3, 0, 2)


def test_what_could_not_take_it_stops_all_that_comes_after():
    opened = release_waves(spec())[:1]
    step = run(spec(), says(1, healthy=2, rolled_back=1), opened)
    assert (step.phase, step.waves) == ("Failed", opened)
    allowed = spec(failures={"maximum": 1}, success={"minimum": "60%"})
    assert run(allowed, says(1, healthy=2, rolled_back=1), opened).phase == "Progressing"


def test_a_wave_soaks_and_one_without_anybody_who_is_upgraded_waits_for_a_person():
    canary = {"name": "all", "percent": 100, "soak": "10m"}
    opened = release_waves(spec(canary))
    said = says(1, healthy=6)
    soaking = run(spec(canary), said, opened, now=1_000)
    assert (soaking.phase, soaking.good_since_ms, soaking.due_seconds) == ("Soaking", 1_000, 600)
    assert run(spec(canary), said, opened, since=1_000, now=601_000).phase == "Complete"
    nobody = says(1, managed_elsewhere=6)
    waits = run(spec(canary), nobody, opened)
    assert waits.phase == "Waiting"
    assert waits.message == (
        'wave "all" has nobody who is upgraded through the tree, so that nobody tries it; give '
        "some a launcher and a publisher, or pass it: leafcast upgrade start 9.0.0 --allow-empty "
        "(allowEmpty: true in a LeafcastRelease)"
    )
    gold = {"name": "gold", "selector": {"matchLabels": {"tier": "gold"}}}
    empty = spec(gold, canary)
    waits = run(empty, Running())
    assert waits.message.startswith(
        'wave "gold" admits nobody, so that nobody tries it; label Sync'
    )
    passed = run(spec({**gold, "allowEmpty": True}, canary), Running(), waits.waves)
    assert [(it.number, it.relays, it.edges) for it in passed.waves][1:] == [(2, 1, False)]
    assert run(spec({**canary, "allowEmpty": True, "soak": "1s"}), nobody, opened, 0, 1_000).phase


def test_who_was_not_heard_of_holds_a_wave_up_but_for_the_share_that_may_be_offline():
    everybody = spec({"name": "all", "percent": 100})
    opened = release_waves(everybody)
    assert run(everybody, says(1, healthy=4), opened).phase == "Progressing"
    assert run(everybody, says(1, healthy=5), opened).phase == "Complete"


def test_paused_nothing_more_begins_and_aborted_nothing_is_wanted():
    opened = release_waves(spec())[:1]
    paused = run(spec(paused=True), says(1, healthy=3), opened)
    assert (paused.phase, paused.waves) == ("Paused", opened)
    assert run(spec(paused=True), Running()).waves == ()
    assert run(spec(aborted=True), says(1, healthy=3), opened).waves == ()


def test_one_release_goes_out_at_a_time_and_an_older_one_first():
    listed = LeafcastReleases()
    for version, created in (("9.0.0", "2026-01-01"), ("9.1.0", "2026-01-02")):
        obj = leafcast_release(version)
        obj["metadata"]["creationTimestamp"] = created
        listed.put(version, obj)
    assert (listed.going_out(""), listed.going_out("9.0.0")) == ("9.1.0", "9.0.0")
    ended = {**listed.objects["9.0.0"], "status": {"phase": "Complete"}}
    listed.put("9.0.0", ended)
    assert listed.going_out("9.0.0") == "9.1.0"


def release_of(version, created, phase="", attempt=0, tried=0):
    obj = leafcast_release(version, attempt=attempt)
    obj["metadata"]["creationTimestamp"] = created
    obj["status"] = {"phase": phase, "attempt": tried, "waves": [{}] if phase else []}
    return obj


def listed_of(*objects):
    listed = LeafcastReleases()
    for obj in objects:
        listed.put(obj["metadata"]["name"], obj)
    return listed


@pytest.mark.parametrize("phase", ["Complete", "Aborted"])
def test_what_would_take_nodes_back_goes_out_only_when_a_person_asks(phase):
    newer = release_of("9.10.0", "2026-01-02", phase)
    for created in ("2026-01-01", "2026-01-03"):
        older = release_of("9.9.0", created)
        listed = listed_of(newer, older)
        assert (listed.going_out("9.10.0"), listed.going_out("")) == ("9.10.0", None)
        assert listed.passed_by("9.9.0") == "9.10.0"
        attempt = attempt_to_begin("9.9.0", [newer, older])
        listed = listed_of(newer, release_of("9.9.0", created, attempt=attempt))
        assert listed.going_out("9.10.0") == "9.9.0"
        # It began, and goes on to its end; then nothing follows by itself.
        listed = listed_of(newer, release_of("9.9.0", created, "Progressing", attempt, attempt))
        assert listed.going_out("9.9.0") == "9.9.0"
        listed = listed_of(newer, release_of("9.9.0", created, "Complete", attempt, attempt))
        assert listed.going_out("9.9.0") == "9.9.0"


def test_a_release_that_ended_begins_anew_when_it_is_started_again_and_not_by_itself():
    former, newer = release_of("9.0.0", "1", "Complete"), release_of("9.1.0", "2", "Complete")
    assert listed_of(former, newer).going_out("9.1.0") == "9.1.0"
    attempt = attempt_to_begin("9.0.0", [former, newer])
    again = release_of("9.0.0", "1", "Complete", attempt)
    assert listed_of(again, newer).going_out("9.1.0") == "9.0.0"
    # Not before the one that is under way, which a person may abort.
    assert listed_of(again, release_of("9.1.0", "2", "Failed")).going_out("9.1.0") == "9.1.0"
    assert attempt_to_begin("9.0.0", [again, newer]) == attempt, "asked once"
    assert attempt_to_begin("9.2.0", [former, newer]) == 0
    # To try once more takes nobody back.
    check_takes_nobody_back(newer, [former, newer])
    for phase in ("Complete", "Waiting"):
        former = release_of("9.0.0", "1", phase)
        with pytest.raises(CallFailed, match=r"9.1.0 did.*leafcast upgrade start 9.0.0"):
            check_takes_nobody_back(former, [former, newer])
    check_takes_nobody_back(release_of("9.0.0", "1", "Failed", 1, 1), [newer])


def test_pieces_that_no_release_names_any_more_are_named_once():
    listed = listed_of(leafcast_release("9.0.0"))
    pieces = frozenset(map(sha256, PIECES.values()))
    assert listed.unnamed_pieces() == frozenset()
    listed.put("9.1.0", leafcast_release("9.1.0", manifest=signed_manifest("9.1.0", OTHER)))
    listed.remove("9.0.0")
    assert listed.unnamed_pieces() == pieces
    assert listed.unnamed_pieces() == frozenset()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"manifest": "{not json"}, "spec.manifest: it is no JSON object"),
        ({"manifset": "{}"}, "spec.manifset"),
        ({"version": "nine point 0"}, "spec.version: 'nine point 0' is no version"),
        ({"success": {"of": "synced"}}, "spec.success.of: synced is nothing"),
        ({"path": "emea//"}, 'spec.path: "emea//" is not a path'),
        (
            {"waves": [{"name": "a", "percent": 100, "rate": {"perMinute": 1}}]},
            "spec.waves[0].rate",
        ),
    ],
)
def test_a_release_that_cannot_be_is_refused_by_the_field(change, said):
    obj = leafcast_release("9.0.0")
    obj["spec"] |= change
    with pytest.raises(InvalidObject) as refused:
        parse_wish(obj)
    assert said in str(refused.value)


def test_a_wave_says_whom_it_waits_for_and_a_failed_one_what_to_do():
    release = spec({"name": "all", "percent": 100})
    members = release_members(release_waves(release), records())
    opened = release_waves(release)
    emea, apac = says(1, healthy=1, fetching=2), says(1, healthy=1, managed_elsewhere=1)
    running = merged([emea, apac])
    waits = run(release, running, opened)
    below, heard = {"emea": emea, "apac": apac}, {"emea": 1_000_999, "apac": 5}
    said = with_holders(waits, "9.0.0", members, running, below, {})
    assert said == (
        'wave "all": 2 of 6 nodes are healthy with it; under way: /emea (2 fetching); '
        "1 said nothing of it yet"
    )
    failed = run(release, says(1, healthy=4, refused=2), opened)
    silent = with_holders(waits, "9.0.0", members, running, below, heard)
    assert "under way: /emea (2 fetching; last heard 1970-01-01 00:16:40 UTC); 1 said" in silent
    assert with_holders(failed, "9.0.0", members, running, {}, {}) == failed.message
    assert with_way_back(waits, "9.0.0", "8.0.0") == waits.message
    assert with_way_back(failed, "9.0.0", "8.0.0") == (
        'wave "all": 2 of 6 could not take it; nothing more begins; mend what is wrong there, or '
        "allow more failures, then leafcast upgrade retry 9.0.0; or end it: leafcast upgrade abort "
        "9.0.0, then go back: leafcast upgrade start 8.0.0; or let another release out"
    )
    assert with_way_back(failed, "9.0.0", "").endswith(
        "abort 9.0.0, then let out another release, that those nodes take: "
        "leafcast upgrade start VERSION --manifest FILE --pieces FOLDER"
    )


def test_a_release_that_failed_names_the_one_to_go_back_to_if_one_is_at_hand():
    failed = release_of("9.2.0", "4", "Failed")
    listed = listed_of(
        release_of("9.0.0", "1", "Complete"),
        release_of("9.1.0", "2", "Complete"),
        release_of("9.1.1", "3", "Aborted"),
        release_of("9.3.0", "5", "Complete"),
        failed,
    )
    assert (listed.former("9.2.0"), listed.former("9.0.0")) == ("9.1.0", "")
    assert [name for name in listed.values if listed.has_failed(name)] == ["9.2.0"]


def test_nobody_is_told_to_go_back_to_what_would_be_refused_or_is_for_another_place():
    failed = release_of("9.2.0", "4", "Failed")
    failed["spec"]["path"] = "/emea"
    aside, former = release_of("9.1.0", "2", "Complete"), release_of("9.0.0", "1", "Complete")
    aside["spec"]["path"] = "/emea/s1"
    former["status"]["waves"] = [{"healthy": 1}]
    assert listed_of(aside, former, failed).former("9.2.0") == "9.0.0"
    asked = []

    def refused(manifest, accepted):
        asked.append(({*accepted}, manifest == former["spec"]["manifest"].encode()))
        return "root 2 has other keys"

    assert listed_of(aside, former, failed).former("9.2.0", refused) == ""
    # By what nodes run, and by what the failed one brought to those that tried it.
    assert asked == [({"9.0.0", "9.2.0"}, True)]
    far = release_of("9.0.0", "1", "Complete")
    far["spec"]["manifest"] = signed_manifest("9.0.0", wire=(9, 9))
    assert listed_of(far, failed).former("9.2.0") == ""
