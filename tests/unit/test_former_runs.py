"""What earlier processes held on a data directory is over there, and counts for no copy of it."""

import shutil
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest

from leafcast.data_dir import DataDir
from leafcast.members import former_runs
from leafcast.members import member as member_module
from leafcast.members.former_runs import FILE, RUNS_MAX, FormerRuns
from leafcast.members.member import Member
from relay.adapters.clock import SystemClock, SystemDice
from relay.members.lease import LeaseNote, LeaseSeen
from relay.ports import BusBroken
from schemas.values.identity import NodePath


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "member"
    folder.mkdir()
    with DataDir(folder).locked():
        yield folder


def test_each_process_knows_the_runs_before_it(place):
    first = FormerRuns(place)
    assert first.begin("run 1") == ()
    assert first.begin("run 2") == ("run 1",)
    assert FormerRuns(place).begin("run 3") == ("run 1", "run 2")


def test_the_last_runs_alone_are_known(place):
    runs = [f"run {number}" for number in range(2 * RUNS_MAX)]
    for run in runs:
        FormerRuns(place).begin(run)
    assert FormerRuns(place).begin("now") == tuple(runs[-RUNS_MAX:])


def test_a_copy_of_the_directory_knows_no_runs(place, tmp_path):
    FormerRuns(place).begin("run 1")
    copy = shutil.copytree(place, tmp_path / "copy")
    with DataDir(copy).locked():
        assert FormerRuns(copy).begin("run 2") == ()


@pytest.mark.parametrize("boot", ["another start of the machine", ""])
def test_of_another_start_of_a_machine_no_run_is_known(place, monkeypatch, boot):
    FormerRuns(place).begin("run 1")
    monkeypatch.setattr(former_runs, "boot_id", lambda: boot)
    assert FormerRuns(place).begin("run 2") == ()


@pytest.mark.parametrize("said", ["", "[]", '{"lock": 1}', "{", '{"lock": "", "runs": 3}'])
def test_a_file_that_cannot_be_read_says_nothing(place, said):
    (place / FILE).write_text(said)
    assert FormerRuns(place).begin("run 1") == ()
    assert FormerRuns(place).begin("run 2") == ("run 1",)


@pytest.fixture
def turn_of(place, monkeypatch):
    """Takes a turn of a member, which ends at once: the lease of it."""
    ends = AsyncMock(side_effect=BusBroken("the turn ends"))
    monkeypatch.setattr(member_module, "until_led", ends)
    machine = SimpleNamespace(connection=Mock(), presence=Mock(), server=Mock(store_failed=False))

    async def taken(member):
        await member._take_turns(machine)
        return member._lease

    return taken


def member_at(place):
    settings, node = Mock(path=NodePath()), Mock(folder=place, state=())
    settings.name = "m1"
    return Member(settings, node, SystemClock(), SystemDice())


async def test_a_process_takes_the_lease_of_those_before_it(place, turn_of):
    first, second = await turn_of(member_at(place)), await turn_of(member_at(place))
    second.saw(LeaseSeen(7, LeaseNote("m1", first.run, 3, "mark")), 0.0)
    assert second.may_take()


async def test_once_another_member_was_heard_no_turn_takes_what_was_held_before(place, turn_of):
    FormerRuns(place).begin("run 1")
    member, held = member_at(place), LeaseSeen(7, LeaseNote("m1", "run 1", 3, "mark"))
    for _ in range(2):
        lease = await turn_of(member)
        lease.saw(held, 0.0)
        assert lease.may_take()
    lease.heard(0.1)
    # The memory was put back to that hold.
    for lease in (await turn_of(member), await turn_of(member_at(place))):
        lease.saw(held, 0.2)
        assert not lease.may_take()


def test_where_it_cannot_be_noted_the_run_goes_on(place):
    (place / FILE).mkdir()
    assert FormerRuns(place).begin("run 1") == ()
    assert FormerRuns(place).begin("run 2") == ()


def test_a_directory_that_nobody_locked_knows_no_runs(tmp_path):
    FormerRuns(tmp_path).begin("run 1")
    assert FormerRuns(tmp_path).begin("run 2") == ()
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("heard", [False, True])
async def test_a_member_knows_whether_it_follows_another_one(place, turn_of, monkeypatch, heard):
    member, follows = member_at(place), []

    async def stands_by(*_):
        if heard and not follows:
            member._lease.heard(0.1)

    async def is_active(*_):
        follows.append(member._follows)
        raise ExceptionGroup("", [BusBroken("the turn ends")])

    monkeypatch.setattr(member_module, "until_led", AsyncMock())
    monkeypatch.setattr(member, "_stand_by", stands_by)
    monkeypatch.setattr(member, "_be_active", is_active)
    machine = SimpleNamespace(connection=Mock(), presence=Mock(), server=Mock(store_failed=False))
    for _ in range(2):
        await member._take_turns(machine)
    # What it knew it knows in each turn that follows.
    assert follows == [heard, heard]
