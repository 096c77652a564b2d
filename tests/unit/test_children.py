"""What a parent makes of its child's words: the ladders of repair, progress, and who is in step."""

import pytest

from relay.core.effects import AddChild, DropReport, Noted, SendWelcome, WriteMail
from relay.core.events import (
    HelloArrived,
    LinkChanged,
    MailSlot,
    OwnRecord,
    Remembered,
    ReportArrived,
    Tick,
)
from relay.core.link.children import (
    REWRITE_EVERY_SECONDS,
    SAY_AFTER_SECONDS,
    Children,
)
from relay.core.link.session import Presence
from relay.core.link.writer import MailboxWriter, Slot
from relay.core.records.accepted import Version
from schemas.records.records import API_NODE, LocationRecord, NodeRecord, Source
from schemas.records.snapshots import SnapshotRank
from schemas.reports.link import WANTS_MAX, Hello, Progress, Repair, Welcome
from schemas.reports.reports import Report, Summary
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, NodePath, short_key
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import decode, encode, replace
from tests.unit.meeting import NKEY, PATH, TERM, TREE, Meeting, hellos
from tests.viewed_node import ViewedNode

OTHER = b"x" * 16
KEY = short_key(b"\xff" * 20)


@pytest.fixture
def meeting():
    meeting = Meeting()
    meeting.first = meeting.join("one", "here")
    return meeting


def said(meeting):
    """What the run that is there says of itself."""
    meeting.now += 30
    (hello,) = hellos(meeting.tell(meeting.first, Tick()))
    return hello


def answered(meeting, hello):
    """The repair that the centre asks for, and the slots that it writes again."""
    effects = meeting.centre_hears(HelloArrived("emea", encode(hello)))
    answers = [decode(Welcome, e.data).repair for e in effects if isinstance(e, SendWelcome)]
    (repair,) = answers or [Repair.NONE]
    return repair, {e.key for e in effects if isinstance(e, WriteMail)}


def reasons(meeting):
    return [effect.reason for effect in meeting.done if isinstance(effect, Noted)]


def presence(meeting):
    return meeting.centre._children.presence("emea")


def test_who_says_what_it_was_sent_is_told_nothing(meeting):
    assert answered(meeting, said(meeting)) == (Repair.NONE, set())
    assert presence(meeting) is Presence.IN_STEP


def test_a_mailbox_that_differs_is_read_again_and_then_written_anew_once_a_minute(meeting):
    hello = replace(said(meeting), digest=OTHER)
    assert answered(meeting, hello) == (Repair.REREAD, set())
    assert answered(meeting, hello) == (Repair.NONE, {KEYS_KEY, SNAPSHOT_KEY})
    hello = replace(hello, sequence=meeting.last)
    told = []
    for _ in range(50):
        meeting.now += 0.1
        told.append(answered(meeting, hello))
    assert not any(written for _, written in told)
    meeting.now += REWRITE_EVERY_SECONDS
    written = [answered(meeting, hello)[1] for _ in range(2)]
    assert {KEYS_KEY, SNAPSHOT_KEY} in written


def test_a_digest_of_something_pending_is_no_digest_that_differs(meeting):
    hello = replace(said(meeting), digest=b"")
    assert [answered(meeting, hello) for _ in range(3)] == [(Repair.NONE, set())] * 3


def asking(meeting):
    """What the run that is there says to a parent that is new, as its link opens."""
    meeting.tell(meeting.first, LinkChanged(up=False))
    (hello,) = hellos(meeting.tell(meeting.first, LinkChanged(up=True)))
    return replace(hello, parent_run="another")


def told(meeting, hello, former_ms=None):
    """The answers to a hello."""
    effects = meeting.centre_hears(HelloArrived("emea", encode(hello), former_ms))
    return [decode(Welcome, e.data) for e in effects if isinstance(e, SendWelcome)]


def test_a_cursor_of_another_parent_is_void_unless_the_digests_are_equal(meeting):
    hello = replace(asking(meeting), sequence=10**6)
    assert answered(meeting, hello) == (Repair.NONE, set())
    for held in (OTHER, b""):
        assert answered(meeting, replace(hello, held=held)) == (Repair.REREAD, set())


def test_mail_newer_than_the_snapshot_is_not_read_again_for_a_new_parent(meeting):
    locate(meeting)
    assert asking(meeting).snapshot
    (welcome,) = told(meeting, asking(meeting))
    assert welcome.repair == Repair.REREAD, "it is not read yet"
    meeting.talk(meeting.first, LinkChanged(up=True))
    (welcome,) = told(meeting, asking(meeting))
    assert (welcome.repair, welcome.last_sequence) == (Repair.NONE, meeting.last)


def test_a_snapshot_that_a_new_parent_wrote_is_read_and_nothing_before_it(meeting):
    hello = asking(meeting)
    at = meeting.mailbox[SNAPSHOT_KEY][0]
    (welcome,) = told(meeting, replace(hello, snapshot=hello.snapshot - 1))
    assert (welcome.repair, welcome.last_sequence) == (Repair.NONE, at - 1)


def test_a_snapshot_of_a_later_reign_is_read_whatever_its_generation():
    newer = SnapshotRank(2, 90)
    writer = MailboxWriter("emea", None, [], lambda *_: None)
    writer.slots[SNAPSHOT_KEY] = Slot(7, Version(90, 0, full=True))
    writer._snapshot_reign, writer._end = newer.reign, None
    held = writer._digest.of_all
    for reached, through in ((SnapshotRank(1, 100), 6), (newer, 7), (SnapshotRank(2, 89), 6)):
        assert writer.read_through(held, reached, ()) == through


def test_who_did_not_hear_of_a_new_run_yet_is_greeted_again_and_reads_nothing_again(meeting):
    meeting.wait(meeting.first, 30)
    hello = replace(said(meeting), parent_run="another")
    assert hello.reports
    assert not hello.held
    (welcome,) = told(meeting, hello)
    assert (welcome.run, welcome.repair) == ("", Repair.NONE)


def test_what_was_said_to_a_former_run_is_answered_by_the_greeting_alone(meeting):
    hello = replace(asking(meeting), held=OTHER)
    assert told(meeting, hello, former_ms=meeting.instant.wall_ms) == []
    assert [welcome.repair for welcome in told(meeting, hello)] == [Repair.REREAD]


def progress(meeting, **changes):
    of = {"run": "one", "parent_run": said(meeting).parent_run}
    fields = {**of, "through": meeting.last, "digest": bytes(16), **changes}
    data = encode(Progress(**fields))
    meeting.centre_hears(ReportArrived("emea", PROGRESS_KEY, data, 1))


def test_a_progress_beyond_what_was_written_is_refused_and_names_the_child(meeting):
    progress(meeting, through=meeting.last + 1)
    assert reasons(meeting) == ["BadReport"]
    assert meeting.centre.figures_of("emea").refused == 1
    assert presence(meeting) is Presence.IN_STEP


def test_reports_that_were_lost_put_a_child_out_of_step_and_are_asked_for_again(meeting):
    progress(meeting, digest=OTHER)
    assert presence(meeting) is Presence.IN_STEP, "a report that was replaced is not lost"
    meeting.now += SAY_AFTER_SECONDS
    meeting.centre_hears(Tick())
    assert presence(meeting) is Presence.CATCHING_UP
    hello = said(meeting)
    assert answered(meeting, hello)[0] == Repair.REPORT_ALL
    assert answered(meeting, hello)[0] == Repair.NONE, "the answer is awaited"
    progress(meeting)
    assert presence(meeting) is Presence.IN_STEP


def test_a_report_that_is_back_in_the_store_of_a_parent_that_starts_keeps_nobody_out_of_step():
    """The child says all anew to each run of its parent, and what it does not say goes."""
    meeting = Meeting()
    key = short_key(bytes(20))
    former = meeting.node(PATH, "one", "here")
    (stored,) = hellos(meeting.tell(former, LinkChanged(up=True)))
    meeting.centre_hears(HelloArrived("emea", encode(replace(stored, parent_run="former"))))
    erased = Report(key, 0, "one", 7, 1, False, 0, Summary({"synced": 1}, {"healthy": 1}, {}))
    meeting.centre_hears(ReportArrived("emea", key, encode(erased), 1))
    assert not any(isinstance(effect, DropReport) for effect in meeting.done)
    meeting.join("one", "here")
    assert presence(meeting) is Presence.IN_STEP
    assert DropReport("emea", key, 1, older=True) in meeting.done


def test_a_progress_over_lost_mail_is_not_taken_and_has_the_mailbox_read_again(meeting):
    progress(meeting, digest=OTHER)
    meeting.now += SAY_AFTER_SECONDS
    meeting.centre_hears(Tick())
    hello = replace(said(meeting), reports=b"")
    assert answered(meeting, hello)[0] == Repair.REPORT_ALL
    meeting.done.clear()
    for _ in range(2):
        progress(meeting, mail=OTHER, snapshot=hello.snapshot)
    assert presence(meeting) is Presence.CATCHING_UP
    told = [decode(Welcome, e.data) for e in meeting.done if isinstance(e, SendWelcome)]
    assert [(each.run, each.repair) for each in told] == [(hello.run, Repair.REREAD)], "once"
    progress(meeting, mail=hello.digest, snapshot=hello.snapshot)
    assert presence(meeting) is Presence.IN_STEP


def test_a_hello_is_answered_unless_it_would_tell_nothing(meeting):
    """And the answer leaves out the snapshot that the child knows."""

    def shown(hello):
        effects = meeting.centre_hears(HelloArrived("emea", encode(hello)))
        return [decode(Welcome, e.data).snapshot for e in effects if isinstance(e, SendWelcome)]

    hello = said(meeting)
    assert hello.snapshot
    assert hello.reports
    assert shown(hello) == []
    assert shown(replace(hello, reports=b"")) == [b""], "it is not welcomed yet"
    former = {"parent_run": "former", "reports": b""}
    for other in ({"newest": 0}, {"shown": b"one"}, former):
        assert shown(replace(hello, **other)) == [meeting.mailbox[SNAPSHOT_KEY][1].data]


def test_who_was_not_welcomed_in_this_link_says_no_progress(meeting):
    assert said(meeting).reports
    meeting.tell(meeting.first, LinkChanged(up=False))
    (hello,) = hellos(meeting.tell(meeting.first, LinkChanged(up=True)))
    assert hello.reports == b""


@pytest.mark.parametrize("changes", [{"run": "two"}, {"parent_run": "another"}], ids=str)
def test_a_progress_of_another_session_changes_nothing(meeting, changes):
    progress(meeting, digest=OTHER, **changes)
    assert presence(meeting) is Presence.IN_STEP


def locate(meeting):
    """Have something written to the child that it does not read."""
    at = NodePath.parse(f"{PATH}/s1")
    source = Source("leafcast.io/Node", "", "", str(at))
    record = NodeRecord(source, meeting.generation + 1, TERM.hex(), "", at, NKEY)
    return meeting.issue("node", record)


def test_who_does_not_reach_what_it_is_sent_is_out_of_step_after_a_minute_for_each_level(meeting):
    hello = said(meeting)
    locate(meeting)
    for _ in range(2):
        meeting.now += 29
        answered(meeting, hello)
        meeting.centre_hears(Tick())
    assert presence(meeting) is Presence.IN_STEP
    meeting.now += 3
    meeting.centre_hears(Tick())
    assert presence(meeting) is Presence.CATCHING_UP
    assert reasons(meeting) == ["Behind"]
    progress(meeting)
    assert presence(meeting) is Presence.IN_STEP


def test_a_child_cannot_buy_time_by_levels_that_there_are_not(meeting):
    hello = replace(said(meeting), levels=2**63 - 1)
    assert answered(meeting, hello)[0] == Repair.NONE
    locate(meeting)
    # Signed records tell of one.
    for _ in range(5):
        meeting.now += 29
        answered(meeting, hello)
        meeting.centre_hears(Tick())
    assert presence(meeting) is Presence.CATCHING_UP


def test_one_childs_wants_push_those_of_no_other_aside():
    children = Children("incarnation", None, [], lambda _name: None, {})
    flood = tuple(short_key(number.to_bytes(20, "big")) for number in range(WANTS_MAX))
    for name, wants in ("evil", flood), ("good", (flood[0], KEY)):
        children.add(name, NKEY, 0, joined=True)
        hello = Hello(name, "", "", 0, b"", 0, wants=wants)
        children.hello(name, hello, 0, 0)
    wanted = list(children.wants())
    assert KEY in wanted[:4]
    assert sorted(wanted) == sorted({*flood, KEY})


def test_what_a_child_claims_of_levels_leaves_its_parents_own_hello_readable():
    meeting = Meeting()
    relay = meeting.join("one", "here")
    locate(meeting)
    meeting.wait(relay, 30)
    wild = Hello("run", "home", "", 0, b"", 0, levels=2**63 - 1)
    meeting.tell(relay, HelloArrived("s1", encode(wild)))
    meeting.now += 31
    (hello,) = hellos(meeting.tell(relay, Tick()))
    # Signed records tell of none below the child.
    assert hello.levels == 1


def test_a_silent_child_is_noted_once_and_back_as_soon_as_it_is_heard_and_caught_up(meeting):
    hello = said(meeting)
    for _ in range(3):
        meeting.now += 91
        meeting.centre_hears(Tick())
    assert reasons(meeting) == ["Unreachable"]
    assert presence(meeting) is Presence.SILENT
    answered(meeting, replace(hello, reports=b""))
    assert presence(meeting) is Presence.CATCHING_UP
    progress(meeting)
    assert presence(meeting) is Presence.IN_STEP


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Presence.IN_STEP),
        ({"reports": OTHER}, Presence.CATCHING_UP),
        ({"reports": b""}, Presence.CATCHING_UP),
        ({"through": 10**9}, Presence.CATCHING_UP),
        ({"digest": OTHER}, Presence.CATCHING_UP),
        ({"reports": bytes(17)}, Presence.SILENT),
    ],
)
def test_a_hello_says_the_progress_again(meeting, changes, expected):
    hello = said(meeting)
    meeting.now += 91
    meeting.centre_hears(Tick())
    assert presence(meeting) is Presence.SILENT
    meeting.centre_hears(HelloArrived("emea", encode(replace(hello, **changes))))
    assert presence(meeting) is expected


def test_a_child_whose_key_was_revoked_is_silent_at_once_until_it_has_another(meeting):
    hello, path = said(meeting), str(PATH)

    def give(nkey):
        source = Source(API_NODE, TREE, "", path)
        record = NodeRecord(source, meeting.generation + 1, TERM.hex(), "", PATH, nkey)
        meeting.issue("node", record)

    give("")
    assert presence(meeting) is Presence.SILENT
    assert meeting.done[-1] == AddChild(PATH, "")
    # What was under way as its link was cut.
    meeting.centre_hears(HelloArrived("emea", encode(hello)))
    progress(meeting)
    assert presence(meeting) is Presence.SILENT
    give(NKEY)
    answered(meeting, hello)
    progress(meeting)
    assert presence(meeting) is Presence.IN_STEP
    assert reasons(meeting) == ["Unreachable"]


def test_a_node_without_memory_writes_and_erases_nothing_in_its_childrens_mailboxes():
    meeting = Meeting()
    relay = meeting.join("one", "here")
    locate(meeting)
    source = Source("edge.kubestellar.io/Location", "inv", "", "l")
    location = LocationRecord(source, meeting.generation + 1, TERM.hex(), "", {}, {}, None)
    meeting.issue("location", location)
    meeting.wait(relay, 30)
    kept = [OwnRecord(it.key, it.data, "", 0) for it in relay.records.values()]
    assert len(kept) == 2
    mail = tuple(
        MailSlot("s1", key, at, 1, bytes(32), has_body=True)
        for at, key in enumerate((KEYS_KEY, source.key), 1)
    )
    restored = ViewedNode(relay.config, Remembered(tuple(kept), mail), [], meeting.instant)
    made = [*restored.start(), *meeting.tell(restored, Tick())]
    assert not [effect for effect in made if type(effect).__name__ in ("WriteMail", "ClearMail")]
