"""Items of lists that stand under another key than we applied: which are ours, and go back.

Server-side apply knows an item by its key. Whoever changes a key at a cluster leaves an item that
is wholly theirs; ours would come beside it, and the server may refuse the two. What of ours is
missing is known by what was noted as applied, what it became by what both have alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from typing import Any

from relay.objects.merge import copied, same
from relay.space_errors import Conflict, SpaceError
from relay.space_port import Object, Space
from relay.syncer.object_marks import MANAGER
from relay.syncer.ownership import (
    OwnedFields,
    counted_path,
    element_keys,
    is_marked,
    item_path,
    owned_fields,
)
from schemas.objects.objects import ObjectKey
from schemas.values.fields import Steps, value_at

PUT_BACK_MANAGER = "leafcast-put-back"
"""Holds an item only between two requests: from its being put back to its being ours again."""
COMPLETIONS_MAX = 64
NESTED_MAX = 8
COUNTED_MAX = 256
# A part of a key that a wish need not say.
_DEFAULT_KEYS = {"protocol": "TCP"}
SAID_TWICE = re.compile(r"duplicate|unique", re.IGNORECASE)
"""In what servers say of two items that have alike what only one may have."""
_DUPLICATE = re.compile(r'(\w+): Duplicate value: "?([^",\s]*)"?')
_SCALARS = (str, int, float, bool)

ItemKeys = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MovedItem:
    """An item that stands where it was not applied."""

    # Where it stands, the index last.
    steps: Steps
    path: str
    # What its key is to be again; None if it is to go.
    keys: ItemKeys | None
    managers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Wished:
    """An item that is wished."""

    item: Object
    keys: ItemKeys
    # Whether it was applied before, and whether it is there.
    noted: bool
    there: bool


@dataclass(frozen=True, slots=True)
class _Other:
    """An item that is there and not wished, and that others hold."""

    item: Object
    steps: Steps
    path: str
    owners: tuple[OwnedFields, ...]
    # Whether it was applied before.
    noted: bool

    @property
    def is_written(self) -> bool:
        """Whether nobody applies it under its key."""
        return not any(owner.applied for owner in self.owners)

    def moved(self, keys: ItemKeys | None) -> MovedItem:
        names = tuple(dict.fromkeys(owner.manager for owner in self.owners))
        return MovedItem(self.steps, self.path, keys, names)


@dataclass(frozen=True, slots=True)
class _KeyedList:
    """One list of which a server knows the items by these fields."""

    names: tuple[str, ...]
    wished: tuple[_Wished, ...]
    others: tuple[_Other, ...]
    # How many of the items that were applied are not there under their keys.
    missing: int


def moved_items(live: Object, wish: Object, fields: bytes) -> list[MovedItem]:
    """Items of ours whose key somebody changed; `fields` are marks of what was applied.

    What another applier says under its key is its own. So is what only took the place of ours.
    """
    found = []
    for keyed in _keyed_lists(live, wish, fields):
        left = [it for it in keyed.wished if it.noted and not it.there]
        for other in keyed.others:
            if other.noted or not other.is_written:
                continue
            mine = next((it for it in left if _became(it, other, keyed.names)), None)
            if mine is not None:
                left.remove(mine)
                found.append(other.moved(mine.keys))
    return found


def still_there(live: Object, wish: Object, items: Sequence[MovedItem]) -> list[MovedItem]:
    """Those of these items that stand where they stood, beside what is wished: they are to go."""
    paths = {item.path for item in items}
    others = (it for keyed in _keyed_lists(live, wish, b"") for it in keyed.others)
    return [other.moved(None) for other in others if other.path in paths]


def items_in_the_way(
    live: Object, wish: Object, fields: bytes, message: str, *, force: bool
) -> tuple[list[MovedItem], list[MovedItem]]:
    """Items for which a wish was refused with these words: those that go back, and others' own.

    Ours are those that were applied before, and those that stand for one that was: for the wished
    one, or, if that is another by now, for one that is missing. By `force` all go back.
    """
    mine, theirs = list[MovedItem](), list[MovedItem]()
    told = frozenset(_DUPLICATE.findall(message))
    for keyed in _keyed_lists(live, wish, fields):
        wished = sorted(keyed.wished, key=lambda it: (it.there, not it.noted))
        missing = keyed.missing
        for other in keyed.others:
            rival = next((it for it in wished if _collide(it, other, keyed.names, told)), None)
            if rival is None:
                continue
            wished.remove(rival)
            stands_in = not rival.there and (rival.noted or (missing > 0 and other.is_written))
            missing -= stands_in
            ours = other.noted or stands_in
            found = other.moved(None if rival.there else rival.keys)
            (mine if ours or force else theirs).append(found)
    return mine, theirs


def with_items_put_back(live: Object, items: Sequence[MovedItem]) -> Object:
    """The object with these items under their former keys, or without them."""
    changed: Object = copied(live)
    for moved in sorted(items, key=lambda it: str(it.steps[:-1])):
        if moved.keys is not None:
            said = {name: value for name, value in moved.keys.items() if value is not None}
            value_at(changed, moved.steps).update(said)
    # From the last on, so that the places of the others stay.
    for moved in sorted(items, key=_index, reverse=True):
        if moved.keys is None:
            del value_at(changed, moved.steps[:-1])[moved.steps[-1]]
    return changed


async def put_back(
    space: Space,
    key: ObjectKey,
    live: Object,
    items: Sequence[MovedItem],
    wish: Object,
    fields: bytes,
) -> bool:
    """Put items of this very object back, and leave them to nobody; whether the space took it.

    What moved within an item that moved goes back with it. Raises Conflict if the object is another
    by now.
    """
    try:
        for _ in range(NESTED_MAX):
            if not items:
                break
            live = await space.replace(with_items_put_back(live, items), PUT_BACK_MANAGER)
            items = moved_items(live, wish, fields)
    except Conflict:
        raise
    except SpaceError:
        return False
    await leave_to_nobody(space, key, live)
    return True


async def leave_to_nobody(space: Space, key: ObjectKey, live: Object) -> None:
    """Have nobody hold what was put back; raises SpaceError."""
    await space.disown(key, str(live["metadata"]["uid"]), (PUT_BACK_MANAGER,), ())


def _keyed_lists(live: Object, wish: Object, fields: bytes) -> Iterator[_KeyedList]:
    yield from _lists(live, wish, owned_fields(live), fields, (), "")


def _lists(
    live: Any, wish: Any, owned: Sequence[OwnedFields], fields: bytes, steps: Steps, path: str
) -> Iterator[_KeyedList]:
    """The keyed lists in a part of a wish, as far as the object has that part, too."""
    if not owned:
        return
    if isinstance(wish, Mapping) and isinstance(live, Mapping):
        for name, value in wish.items():
            if isinstance(value, (Mapping, list, tuple)) and name in live:
                below = [part for one in owned if (part := one.below(f"f:{name}"))]
                inner = (live[name], value, below, fields, (*steps, name), f"{path}.{name}")
                yield from _lists(*inner)
        return
    if isinstance(wish, (list, tuple)) and isinstance(live, (list, tuple)):
        elements = [(one, name, keys) for one in owned for name, keys in element_keys(one.fields)]
        if elements and all(isinstance(item, Mapping) for item in (*wish, *live)):
            yield from _items(live, wish, elements, fields, steps, path)


def _items(
    live: Sequence[Any],
    wish: Sequence[Any],
    elements: Sequence[tuple[OwnedFields, str, ItemKeys]],
    fields: bytes,
    steps: Steps,
    path: str,
) -> Iterator[_KeyedList]:
    """A keyed list, and those in its items."""
    names = tuple(sorted(elements[0][2]))
    places = {_key_text(item, names): at for at, item in reversed([*enumerate(live)])}
    wished, taken = list[_Wished](), set[int]()
    for item in wish:
        forms = list(_completions(item, live, names))
        noted = [keys for keys in forms if is_marked(item_path(path, keys), fields)]
        forms = noted or forms
        texts = [_key_text(keys, names) for keys in forms]
        at = next((places[text] for text in texts if text in places), -1)
        wished.append(_Wished(dict(item), forms[0], bool(noted), at >= 0))
        if at < 0:
            continue
        taken.add(at)
        here = {name: live[at].get(name) for name in names}
        below = [part for one, name, keys in elements if keys == here and (part := one.below(name))]
        inner = (live[at], item, below, fields, (*steps, at), item_path(path, here))
        yield from _lists(*inner)
    others = []
    for at, item in enumerate(live):
        here = {name: item.get(name) for name in names}
        owners = [one for one, _, keys in elements if keys == here and one.manager != MANAGER]
        if at not in taken and owners:
            at_path = item_path(path, here)
            noted_before = is_marked(at_path, fields)
            others.append(_Other(item, (*steps, at), at_path, tuple(owners), noted_before))
    mine = sum(one.manager == MANAGER and one.applied for one, _, _ in elements)
    counts = range(1, COUNTED_MAX + 1)
    noted_count = next((n for n in counts if is_marked(counted_path(path, n), fields)), 0)
    yield _KeyedList(names, tuple(wished), tuple(others), noted_count - mine)


def _completions(
    item: ItemKeys, live: Sequence[ItemKeys], names: Sequence[str]
) -> Iterator[ItemKeys]:
    """The keys that an item may have: what it does not say of one, a server completes."""
    choices = []
    for name in names:
        seen = {str(other.get(name)): other.get(name) for other in live}
        default = _DEFAULT_KEYS.get(name)
        choices.append([item[name]] if name in item else [default, *seen.values()])
    for number, values in enumerate(product(*choices)):
        if number < COMPLETIONS_MAX:
            yield dict(zip(names, values, strict=True))


def _key_text(item: ItemKeys, names: Sequence[str]) -> str:
    return item_path("", {name: item.get(name) for name in names})


def _became(wished: _Wished, other: _Other, names: Sequence[str]) -> bool:
    """Whether an item has all fields of one that is missing, and one of them with its value.

    One without fields but its key is its key: whoever says another one says another item, unless a
    part of the key is the same.
    """
    leaves = dict(_leaves(wished.item, names))
    theirs = dict(_leaves(other.item, names))
    if not leaves.keys() <= theirs.keys():
        return False
    if not leaves:
        return any(same(value, other.item.get(name)) for name, value in wished.keys.items())
    return any(same(value, theirs[path]) for path, value in leaves.items())


def _collide(
    wished: _Wished, other: _Other, names: Sequence[str], told: Set[tuple[str, str]]
) -> bool:
    """Whether two items have alike what a server refused; if it did not say what, any text."""
    if not told and wished.there:
        return False
    theirs = dict(_leaves(other.item, names))
    return any(
        path in theirs
        and isinstance(value, _SCALARS)
        and same(value, theirs[path])
        and (not told or (path[-1], str(value)) in told)
        for path, value in _leaves(wished.item, names)
    )


def _leaves(
    value: Mapping[str, Any], without: Sequence[str] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What a mapping holds, by path; a list is one value."""
    for name, held in value.items():
        if name in without:
            continue
        if isinstance(held, Mapping) and held:
            for path, leaf in _leaves(held):
                yield (name, *path), leaf
        else:
            yield (name,), held


def _index(item: MovedItem) -> int:
    last = item.steps[-1]
    assert isinstance(last, int)
    return last
