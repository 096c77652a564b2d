"""A child whose reports were lost is told to say them all again, until its progress agrees."""

import pytest

from relay.core.effects import SendWelcome
from relay.core.link.children import SAY_AFTER_SECONDS, SAY_EVERY_SECONDS, Children
from relay.core.link.session import Presence
from schemas.reports.link import Hello, Progress, Repair, Welcome
from schemas.values.wire import decode

OURS, THEIRS = bytes(16), b"other digest, 16"


class NoMail:
    """A target that has nothing for anyone."""


@pytest.fixture
def children():
    out = []
    found = Children("p", NoMail(), out, lambda _name: None, {})
    found.add("a", "nkey", 0.0, joined=True)
    found.out = out
    return found


def hello(children, now, run="r"):
    """Say hello; whether all is void by it, and what is asked for."""
    void = children.hello("a", Hello(run, "home", "p", 0, b"", 0), now, 0)
    (effect,) = [effect for effect in children.out if isinstance(effect, SendWelcome)]
    children.out.clear()
    return void, decode(Welcome, effect.data).repair


def progressed(children, digest, now):
    return children.progressed("a", Progress("r", "p", 0, digest), OURS, now)


def test_who_differs_is_asked_with_a_later_hello_and_again_until_it_agrees(children):
    assert hello(children, 0.0) == (True, Repair.NONE)
    assert not progressed(children, THEIRS, 1.0)
    assert hello(children, 5.0) == (False, Repair.NONE)
    asked = 1.0 + SAY_AFTER_SECONDS
    assert hello(children, asked) == (True, Repair.REPORT_ALL)
    assert hello(children, asked + 30.0) == (False, Repair.NONE)
    assert hello(children, asked + SAY_EVERY_SECONDS) == (True, Repair.REPORT_ALL)
    assert progressed(children, OURS, asked + SAY_EVERY_SECONDS + 1.0)
    assert children.presence("a") is Presence.IN_STEP
    assert hello(children, asked + 2 * SAY_EVERY_SECONDS + 2.0) == (False, Repair.NONE)


def test_a_difference_that_ends_by_itself_is_none(children):
    hello(children, 0.0)
    progressed(children, THEIRS, 1.0)
    assert progressed(children, OURS, 2.0)
    assert hello(children, 60.0) == (False, Repair.NONE)
