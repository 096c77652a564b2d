"""Who runs what, as children say it: of nodes at and below them, while they are children."""

from relay.core.effects import CountChanged
from relay.core.events import HelloArrived, RunningStated, Tick
from relay.core.link.session import SILENT_AFTER_SECONDS
from relay.core.releases import AWAY_SECONDS, GATHER_SECONDS
from schemas.records.records import API_NODE, API_RELEASE, NodeRecord, ReleaseRecord, Source
from schemas.records.release_body import ReleaseWave
from schemas.reports.link import Hello
from schemas.reports.running import Running, RunningFault, merged, of_silent, running_here
from schemas.values.identity import NodePath
from schemas.values.wire import encode
from tests.unit.meeting import NKEY, PATH, TERM, TREE, Meeting
from tests.unit.releases_world import release

HEALTHY = running_here(str(PATH), "1.0.0", "", 0, "healthy")
SITE = NodePath.parse("/emea/s1")


def node_record(path, generation):
    return NodeRecord(Source(API_NODE, TREE, "", str(path)), generation, TERM.hex(), "", path, NKEY)


def test_faults_of_nodes_that_do_not_hang_at_a_child_are_left_out():
    meeting = Meeting()
    said = [
        RunningFault(path, "9.0.0", "refused", "no room")
        for path in ("", "/", "/apac", "/emeas", "/emea", "/emea/s1", "not a path")
    ]
    child = meeting.join("one", "here")

    meeting.talk(child, RunningStated(Running(HEALTHY.counts, tuple(said))))
    meeting.wait(child, GATHER_SECONDS)

    told = meeting.centre.running_at("emea")
    assert told.counts == HEALTHY.counts
    assert {it.path for it in told.faults} == {"/emea", "/emea/s1"}


def test_a_child_that_is_removed_counts_no_more_and_the_sum_is_said_on():
    meeting = Meeting()
    relay = meeting.join("one", "here")
    meeting.talk(relay, RunningStated(HEALTHY))
    site = meeting.issue("node", node_record(SITE, meeting.generation + 1))
    meeting.wait(relay, 3)
    meeting.sign()
    counts = running_here(str(SITE), "1.0.0", "", 0, "healthy").counts
    hello = Hello("a run", "a home", "", 0, b"", 0, running=counts)
    meeting.tell(relay, HelloArrived("s1", encode(hello)))
    meeting.wait(relay, GATHER_SECONDS)
    assert meeting.centre.running().nodes == 2

    meeting.sign([site])
    meeting.wait(relay, 0)
    said = meeting.now
    meeting.wait(relay, GATHER_SECONDS)

    assert meeting.centre.running().nodes == 1, f"{meeting.now - said} s later"


def test_who_steers_releases_looks_again_when_a_child_of_the_centre_is_removed():
    meeting = Meeting()
    body, _ = release("9.0.0", ReleaseWave(1))
    source = Source(API_RELEASE, TREE, "", "release")
    key = meeting.issue(
        "delta", ReleaseRecord(source, meeting.generation + 1, TERM.hex(), "", body)
    )
    child = meeting.join("one", "here")
    meeting.talk(child, RunningStated(HEALTHY))
    meeting.wait(child, GATHER_SECONDS)
    assert CountChanged(key) in meeting.done
    meeting.done.clear()

    meeting.sign([next(k for k, it in meeting.centre.records.items() if it.kind == "node")])

    assert CountChanged(key) in meeting.done
    assert not meeting.centre.running().nodes


def test_who_is_silent_for_long_is_under_way_to_nothing_until_it_is_heard():
    meeting = Meeting()
    under_way = merged([HEALTHY, running_here(str(SITE), "1.0.0", "9.0.0", 1, "fetching")])
    fetching, silent = (
        {(it.wanted, it.wave, it.state): it.count for it in said.counts}
        for said in (under_way, of_silent(under_way))
    )
    assert silent == {("", 0, "healthy"): 1, ("", 0, "other"): 1}

    def told():
        counts = meeting.centre.running().counts
        return {(it.wanted, it.wave, it.state): it.count for it in counts}

    meeting.issue("node", node_record(SITE, meeting.generation + 1))
    meeting.sign()
    hello = Hello("a run", "a home", "", 0, b"", 0, running=under_way.counts)
    meeting.centre_hears(HelloArrived("emea", encode(hello)))
    assert told() == fetching
    for seconds, said in (
        (SILENT_AFTER_SECONDS, fetching),
        (AWAY_SECONDS - 1, fetching),
        (1, silent),
    ):
        meeting.now += seconds
        meeting.centre_hears(Tick())
        assert told() == said
    meeting.centre_hears(HelloArrived("emea", encode(hello)))
    assert told() == fetching
