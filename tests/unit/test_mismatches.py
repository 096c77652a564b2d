"""A child whose mailbox differs for its parent, once or however often it is written again."""

from relay.core.children import REWRITE_EVERY_SECONDS, Child
from schemas.reports import WANT_AGAIN, WANT_NONE, Heartbeat, SessionMessage

OURS, OTHER = b"o" * 16, b"x" * 16
MAIL = SessionMessage("inc", 0, 7, 0, 0, WANT_NONE)


def beat(digest: bytes) -> Heartbeat:
    return Heartbeat(3, "inc", 7, digest, b"", b"", 0, has_memory=True)


def said(child: Child, digest: bytes, now: float) -> tuple[str, bool]:
    """What the child is told to read, and whether its mailbox is written again."""
    want = child.answer(beat(digest), MAIL, OURS, 0).want
    return want, child.is_rewritten(now)


def test_a_mailbox_that_differs_twice_is_written_again_at_once():
    child = Child("nkey", 0.0, epoch=3)
    assert said(child, OTHER, 1.0) == (WANT_AGAIN, False)
    assert said(child, OTHER, 1.0) == (WANT_AGAIN, True)
    assert said(child, OURS, 1.0) == (WANT_NONE, False)


def test_a_mailbox_that_writing_does_not_mend_is_not_written_all_the_time():
    child = Child("nkey", 0.0, epoch=3)
    told = [said(child, OTHER, 1.0 + beats * 0.01) for beats in range(500)]
    assert [written for _, written in told].count(True) == 1
    assert [want for want, _ in told].count(WANT_AGAIN) <= 4
    assert said(child, OTHER, 2.0 + REWRITE_EVERY_SECONDS)[1]
