"""What is said of a void key where the parent's members confirm it, and where nobody answers."""

from types import SimpleNamespace

import pytest

from leafcast.ask.remote import checked_answer
from leafcast.cli.commands.node import _tell_unconfirmed
from leafcast.daemon.nodes.enrolment import ADMIT_SECONDS_MAX, Enrolment
from relay.ports import BusBroken
from relay.shell.asker import AskFailed
from schemas.records.asks import AskFault
from schemas.values.identity import NodePath

REGION, STORE = NodePath.parse("/region-1"), NodePath.parse("/region-1/store")
SILENT = AskFailed(AskFault("Unreachable", "/region-1 cannot be reached", "/region-1"))


class Parent:
    """A parent that answers so in turn, the last thing for ever; and the clock."""

    def __init__(self, *answers):
        self.answers, self.seconds = list(answers), 0.0
        self.enrolment = Enrolment(None, self, None, self, None)

    def now(self):
        return SimpleNamespace(seconds=self.seconds)

    async def sleep(self, seconds):
        self.seconds += seconds

    async def ask_signed(self, path, verb, arguments):
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(said, Exception):
            raise said
        return said


def answer(*children, **members):
    listed = [{"name": it, "role": "standby", "sameChildren": same} for it, same in members.items()]
    found = {"role": "relay", "children": {it: {} for it in children}, "members": listed}
    assert checked_answer(REGION, found)["members"]
    return found


@pytest.mark.parametrize("failure", [SILENT, BusBroken("no centre runs")])
async def test_of_a_parent_that_does_not_answer_nobody_says_that_all_confirmed(failure):
    assert await Parent(failure).enrolment.let_out(STORE) is None
    assert await Parent(failure).enrolment.unconfirmed(REGION) is None


@pytest.mark.parametrize("failure", [SILENT, BusBroken("no centre runs")])
async def test_a_parent_that_is_silent_for_a_moment_is_asked_again(failure):
    confirmed = answer(m1=True, m2=True)
    assert await Parent(failure, confirmed).enrolment.let_out(STORE) == []
    assert await Parent(failure, confirmed).enrolment.unconfirmed(REGION) == []


async def test_members_that_did_not_confirm_are_waited_for_and_then_named():
    parent = Parent(answer("store", m1=True, m2=False), answer(m1=True, m2=True))
    assert await parent.enrolment.let_out(STORE) == []
    parent = Parent(answer(m1=True, m2=False))
    assert await parent.enrolment.let_out(STORE) == ["m2"]
    assert parent.seconds >= ADMIT_SECONDS_MAX


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (None, "Not confirmed: /region-1 does not answer"),
        (["m2"], "Not confirmed by member m2 of /region-1"),
        ([], ""),
    ],
)
def test_a_person_is_told_who_may_let_it_in_still(capsys, members, said):
    _tell_unconfirmed(str(STORE), members)
    printed = capsys.readouterr().out
    assert printed.startswith(said)
    assert bool(printed) is bool(said)
