"""A report that was lost is missed: child and parent come to the same sum, or all is said."""

import os
from dataclasses import replace
from itertools import pairwise

import pytest

from relay.core.children import REPORTS_DIFFER_SECONDS, SAY_EVERY_MAX_SECONDS, Child
from relay.core.report_digest import report_term
from relay.core.reporting import UNCONCERNED, Facts, Reporting
from schemas import wire
from schemas.identity import short_key
from schemas.objects import ObjectKey
from schemas.records import DIGEST_MODULUS
from schemas.reports import (
    WANT_AGAIN,
    WANT_NONE,
    WANT_SAY,
    Heartbeat,
    ObjectResult,
    Report,
    ReportPart,
    SessionMessage,
    Summary,
    part_key,
)

ONE, OTHER = (short_key(bytes([n]) * 20) for n in (1, 2))
DONE = Summary({"synced": 1}, {"healthy": 1}, {"arm": 1})
SENT = Facts(concerned=True, sent=True, bearing=1, silent=False, edge=True, generation=1, most=1)
RESULT = ObjectResult(ObjectKey("", "configmaps", "default", "a"), 1, "d", b"status")


def reporting(facts=SENT):
    return Reporting(lambda child: ord(child) - ord("a"), lambda _child, _key: facts)


def report(key=ONE, epoch=7, revision=1, gone=False, parts=0):
    return Report(key, 0, epoch, revision, 1, "i", 1, gone, parts, DONE)


def total(*said):
    return (sum(report_term(*one) for one in said) % DIGEST_MODULUS).to_bytes(16, "big")


def test_the_sum_is_over_the_last_report_of_each_slot_that_says_that_something_is_there():
    known = reporting()
    for said in (report(), report(OTHER), report(revision=2), report(revision=1)):
        known.take("a", said, "i")
    assert known.digest("a") == total((ONE, (7, 2)), (OTHER, (7, 1)))
    known.take("a", report(OTHER, revision=3, gone=True), "i")
    assert known.digest("a") == total((ONE, (7, 2)))
    known.take("a", report(OTHER, revision=4), "i")
    assert known.digest("a") == total((ONE, (7, 2)), (OTHER, (7, 4)))
    assert known.digest("b") == bytes(16)


def test_later_parts_count_until_there_are_fewer_of_them():
    known = reporting()
    for number in (1, 2):
        known.take_part("a", ReportPart(ONE, number, 7, 1, 1, (RESULT,)))
    known.take("a", report(parts=2), "i")
    assert known.digest("a") == total(*((part_key(ONE, n), (7, 1)) for n in range(3)))
    known.take_part("a", ReportPart(ONE, 1, 7, 2, 1, (RESULT,)))
    known.take("a", report(revision=2, parts=1), "i")
    assert known.digest("a") == total(*((part_key(ONE, n), (7, 2)) for n in range(2)))
    known.take("a", report(revision=3, gone=True), "i")
    assert known.digest("a") == total()


def test_what_is_forgotten_or_has_no_part_in_a_placement_does_not_count():
    known = reporting()
    known.take("a", report(), "i")
    known.take_part("a", ReportPart(ONE, 1, 7, 1, 1, (RESULT,)))
    known.take("b", report(), "i")
    known.forget(ONE)
    assert known.digest("a") == known.digest("b") == total()
    known.take("a", report(OTHER), "i")
    known.forget_child("a")
    assert known.digest("a") == total()
    strange = reporting(UNCONCERNED)
    strange.take("a", report(), "i")
    strange.take_part("a", ReportPart(ONE, 1, 7, 1, 1, (RESULT,)))
    assert strange.digest("a") == total()


BEAT = Heartbeat(7, "i", 1, bytes(16), os.urandom(16), b"", 1, has_memory=True)
ANSWER = SessionMessage("i", 7, 1, 0, 1, WANT_NONE)
OURS = bytes(16)


def in_session():
    return Child("nkey", 0.0, epoch=7)


def test_a_difference_that_lasts_has_all_said_again():
    child = in_session()
    assert child.want_said(BEAT, ANSWER, OURS, 0.0).want == WANT_NONE
    assert child.want_said(BEAT, ANSWER, OURS, REPORTS_DIFFER_SECONDS / 2).want == WANT_NONE
    assert child.want_said(BEAT, ANSWER, OURS, REPORTS_DIFFER_SECONDS).want == WANT_SAY
    assert child.want_said(BEAT, ANSWER, OURS, REPORTS_DIFFER_SECONDS + 1).want == WANT_NONE


def test_a_difference_that_ends_is_none():
    child = in_session()
    child.want_said(BEAT, ANSWER, OURS, 0.0)
    child.want_said(BEAT, ANSWER, BEAT.report_digest, 5.0)
    assert child.want_said(BEAT, ANSWER, OURS, 10.0).want == WANT_NONE


@pytest.mark.parametrize(
    "beat",
    [
        wire.replace(BEAT, epoch=6),
        wire.replace(BEAT, withheld=1),
        wire.replace(BEAT, report_digest=OURS),
    ],
)
def test_only_a_session_in_force_of_a_child_that_holds_no_more_than_it_was_sent_is_compared(beat):
    child = in_session()
    for at in (0.0, 60.0, 120.0):
        assert child.want_said(beat, ANSWER, OURS, at).want == WANT_NONE


def test_of_a_child_not_proven_yet_nothing_follows():
    child = replace(in_session(), proven=False)
    for at in (0.0, 60.0, 120.0):
        assert child.want_said(BEAT, ANSWER, OURS, at).want == WANT_NONE


def test_mail_that_is_to_be_read_again_goes_first():
    child, again = in_session(), wire.replace(ANSWER, want=WANT_AGAIN)
    for at in (0.0, 60.0, 120.0):
        assert child.want_said(BEAT, again, OURS, at).want == WANT_AGAIN


def test_what_asking_does_not_mend_is_asked_for_ever_more_rarely():
    child, times = in_session(), range(0, 40 * 3600, 30)
    said = [child.want_said(BEAT, ANSWER, OURS, float(at)).want for at in times]
    asked = [at for at, want in zip(times, said, strict=True) if want == WANT_SAY]
    waits = [later - earlier for earlier, later in pairwise(asked)]
    assert waits == sorted(waits)
    assert waits[-1] >= SAY_EVERY_MAX_SECONDS
    assert len(asked) < 60
