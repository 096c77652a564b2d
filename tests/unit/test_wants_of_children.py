"""What children ask for goes up by turns, and costs nothing of those who ask for nothing."""

from relay.core.link.children import Children
from relay.core.link.parent import ParentLink
from schemas.records.snapshots import NO_SNAPSHOT
from schemas.reports.link import WANTS_MAX, Hello
from schemas.values.identity import short_key
from schemas.values.wire import decode, encode
from tests.unit.test_say_again import NoMail


class Unlooked(dict):
    """Each is found by name; nobody looks through all."""

    def __iter__(self):
        raise AssertionError("all children are looked through")

    keys = values = items = __iter__


def keys(letter, count):
    return tuple(short_key(f"{letter}{number}".encode()) for number in range(count))


def test_wants_go_by_turns_and_only_who_asks_is_looked_at():
    children = Children("p", NoMail(), [], lambda _name: None, {})
    for name in ("loud", "calm", "gone", *map(str, range(50))):
        children.add(name, "nkey", 0.0, joined=True)
    loud, calm = keys("l", 100), keys("c", 2)
    for name, wants in (("loud", loud), ("gone", keys("g", 3)), ("calm", calm)):
        children.hello(name, Hello("r", "home", "p", 0, b"", 0, wants=wants), 0.0, 0)
    children.remove("gone")
    children.assert_invariants()
    children.by_name = Unlooked(children.by_name)
    asked = list(children.wants())
    assert set(asked[:4]) == {*loud[:2], *calm}
    assert sorted(asked) == sorted({*loud, *calm})


def test_more_wants_than_a_hello_may_name_are_named_by_turns():
    link, wanted = ParentLink("r", "home", None), set(keys("k", 2 * WANTS_MAX + 1))

    def named():
        said = link.hello(0, (NO_SNAPSHOT, b""), wanted, levels=0, refused=0, orphaned=0)
        return decode(Hello, encode(said)).wants

    first, second, third = named(), named(), named()
    assert (len(first), len(second), len(third)) == (WANTS_MAX, WANTS_MAX, WANTS_MAX)
    assert {*first, *second, *third} == wanted
    # What the parent cannot answer keeps nothing else from being named.
    wanted -= {*second}
    assert {*named(), *named()} == wanted
    wanted -= {*first}
    assert set(named()) == wanted
