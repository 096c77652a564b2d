"""`leafcast label` on spaces in memory: kubectl's words, nothing changed in passing."""

import pytest
from click import ClickException

from leafcast.cli.commands.label import LabelRequest, label_all, read_words
from leafcast.cli.resource_arguments import BadResourceArguments
from tests.doubles.memory_space import MemorySpace
from tests.unit.test_delete_command import LOSS, planned
from tests.unit.test_object_commands import (
    CLOCK,
    DICE,
    SHOP,
    WEB,
    applied,
    daemon_with,
    session_with,
)


@pytest.fixture
async def session():
    session = session_with(MemorySpace(CLOCK, DICE))
    await applied(session, SHOP, WEB)
    return session


async def labels(session):
    (obj,) = (await session.workloads.list("", "namespaces")).objects
    return obj["metadata"].get("labels", {})


def request(*words, **options):
    objects, said = read_words(words)
    return LabelRequest(objects=objects, labels=said, **options)


def test_words_name_objects_and_say_labels_in_any_order():
    said = ("loc", "tier=gold", "a", "old-", "b", "example.com/x=")
    assert read_words(said) == (
        ("loc", "a", "b"),
        {"tier": "gold", "old": None, "example.com/x": ""},
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("loc", "a"), "no label is given"),
        (("loc", "a", "b c=d"), "b c=d"),
        (("loc", "a", "b=c d"), "b=c d"),
        (("loc", "a", "b=1", "b-"), "given twice"),
    ],
)
def test_words_that_say_no_labels_are_refused(words, why):
    with pytest.raises(BadResourceArguments, match=why):
        read_words(words)


async def test_labels_are_set_taken_off_and_never_changed_in_passing(session, capsys):
    assert await label_all(session, request("ns", "shop", "a=1")) == 0
    assert await labels(session) == {"a": "1"}
    with pytest.raises(ClickException, match="already has a value"):
        await label_all(session, request("ns", "shop", "a=2", "b=1"))
    assert await labels(session) == {"a": "1"}
    await label_all(session, request("ns/shop", "a=2", overwrite=True))
    await label_all(session, request("ns", "b=1", every=True, dry=True))
    assert await labels(session) == {"a": "2"}
    await label_all(session, request("ns", "shop", "a-"))
    await label_all(session, request("ns", "shop", "a-"))
    assert await labels(session) == {}
    assert await label_all(session, request("ns", "none", "a=1")) == 1
    told = capsys.readouterr().out.splitlines()[-2:]
    assert told == ["namespace/shop labeled", "namespace/shop not labeled"]


async def test_what_takes_much_is_refused_unless_it_is_confirmed(capsys):
    daemon = daemon_with(MemorySpace(CLOCK, DICE), beside=planned(LOSS))
    session = daemon.session
    await applied(session, SHOP)
    with pytest.raises(ClickException, match=r"80 copies .*--confirm-removals"):
        await label_all(session, request("ns", "shop", "a=1"))
    assert await labels(session) == {}
    await label_all(session, request("ns", "shop", "a=1", confirmed=True))
    assert await labels(session) == {"a": "1"}
    assert ("confirm", {"shop": 80}) in daemon.paused.said
    assert "Note: this takes away 80 copies" in capsys.readouterr().err
