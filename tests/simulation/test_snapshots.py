"""A copy of a snapshot is whole, and nobody's but its owner's."""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest

from schemas.identity import NodePath
from tests.simulation.snapshots import Snapshot


@dataclass(slots=True)
class Leaf:
    owner: "Tree | None" = None
    path: NodePath = field(default_factory=NodePath)


class Tree:
    def __init__(self) -> None:
        self.leaf = Leaf(self)
        self.again = [self.leaf, {"leaf": self.leaf}, (self.leaf, 1.5), {2, 3}, frozenset({4})]
        self.empty: tuple[object, ...] = ({}, [], set(), (), deque(), Leaf())
        self.queue = deque([self.leaf], maxlen=2)
        self.lists: defaultdict[str, list[object]] = defaultdict(list, a=[self])
        self.ties, self.random = count(7), Random(3)
        self.bound = self.grow
        self.told = self.teller()
        self.endless, self.quoted = float("inf"), 'it\'s "here"\n'

    def grow(self) -> int:
        self.again.append(None)
        return len(self.again)

    def teller(self) -> Callable[[], object]:
        return lambda: self.leaf


def test_a_copy_is_whole_in_itself():
    original = Tree()
    snapshot = Snapshot(original)
    drawn = original.random.random()
    one = snapshot.copy()
    leaf = one.leaf
    assert leaf is not original.leaf
    assert leaf.owner is one
    assert leaf.path is original.leaf.path
    assert all(same is leaf for same in (one.again[0], one.again[1]["leaf"], one.again[2][0]))
    assert one.again[2:] == [(leaf, 1.5), {2, 3}, frozenset({4})]
    assert one.empty[:5] == ({}, [], set(), (), deque())
    assert (one.queue[0], one.queue.maxlen) == (leaf, 2)
    assert one.lists["a"][0] is one
    assert one.lists["new"] == []
    assert (next(one.ties), one.random.random()) == (7, drawn)
    assert one.told() is leaf
    assert (one.endless, one.quoted) == (original.endless, original.quoted)


def test_what_one_copy_does_no_other_sees():
    original = Tree()
    snapshot = Snapshot(original)
    original.grow()
    first, second = snapshot.copy(), snapshot.copy()
    assert (first.bound(), first.bound(), second.bound()) == (6, 7, 6)
    first.empty[0]["x"] = 1
    assert not second.empty[0]
    assert next(first.ties) == next(second.ties) == 7


def test_what_takes_its_state_as_it_likes_is_refused():
    class Odd:
        def __init__(self) -> None:
            self.kept = 1

        def __setstate__(self, state: object) -> None:
            raise AssertionError

    with pytest.raises(TypeError, match="Odd"):
        Snapshot([Odd()])
