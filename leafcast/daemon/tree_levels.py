"""One level of the tree at a time: a node, and a page of its children, the worst first.

Which nodes there are, and how many destinations lie below each, is of the signed inventory, and
exact. How they are is their parent's word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.ask.tree_rank import worst_nodes_first
from leafcast.centre.centre import Centre
from leafcast.daemon.tree_facts import held_forms, known_paths, node_forms, targets_of
from schemas.records.records import Profile, Record
from schemas.values.identity import NodePath

PAGE_MAX = 200
FOUND_MAX = 50

Form = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Places:
    """The nodes that there are, and the destinations at or below each."""

    children: Mapping[NodePath, Sequence[NodePath]]
    destinations: Mapping[NodePath, int]
    targets: Mapping[NodePath, Profile]

    def has(self, path: NodePath) -> bool:
        """Whether there is such a node."""
        return path.is_root or path in self.children.get(path.parent, ())

    def found(self, words: str) -> Iterator[NodePath]:
        """The nodes that all these words fit: parts of a path or SyncTarget, labels as `a=b`."""
        wanted = words.lower().split()
        for paths in self.children.values():
            for path in paths:
                target = self.targets.get(path)
                if all(_fits(word, path, target) for word in wanted):
                    yield path


def _fits(word: str, path: NodePath, target: Profile | None) -> bool:
    name, equals, value = word.partition("=")
    if equals:
        labels = target.labels.items() if target is not None else ()
        return any(key.lower() == name and said.lower() == value for key, said in labels)
    return word in str(path) or (target is not None and word in target.source.name)


class KnownPlaces:
    """The places of a centre's inventory; what did not change is not gathered again."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre
        self._issuer: object | None = None
        self._here: frozenset[NodePath] = frozenset()
        self._places: Places | None = None

    def now(self) -> Places:
        """As they are now."""
        centre, controllers = self._centre, self._centre.controllers
        issuer = controllers.issuer if controllers is not None else None
        if issuer is not self._issuer:
            self._issuer, self._places = issuer, None
            if issuer is not None:
                issuer.listen(self._changed)
        here = frozenset(centre.nodes)
        if self._places is None or here != self._here:
            self._here = here
            self._places = _places(set(known_paths(centre)), targets_of(centre))
        return self._places

    def _changed(self, _: Iterable[Record]) -> None:
        self._places = None


def _places(paths: Iterable[NodePath], targets: Mapping[NodePath, Profile]) -> Places:
    children = defaultdict[NodePath, list[NodePath]](list)
    for path in sorted(paths):
        if path.names:
            children[path.parent].append(path)
    counts: Counter[NodePath] = Counter()
    for path in targets:
        counts.update(NodePath(path.names[:depth]) for depth in range(len(path.names) + 1))
    return Places(dict(children), counts, targets)


def level_form(
    centre: Centre,
    places: Places,
    elsewhere: Mapping[NodePath, Mapping[str, Any]],
    path: NodePath,
    *,
    skip: int,
    search: str,
) -> Form:
    """`{node, children, count, skip, answers, held}`: a node, and a page of its children.

    `elsewhere` holds the answers of nodes that do not run here; without the node's own one, only
    the names of its children are known. `search` takes those of them with it in their names.
    """
    listed = [it for it in places.children.get(path, ()) if search.lower() in it.name]
    node, *children = node_forms(
        centre, elsewhere, [path, *listed], places.children.keys(), places.targets
    )
    answers = path in centre.nodes or path in elsewhere
    if not answers:
        for child in children:
            child |= {"state": "unknown", "silent_since_ms": None, "complete": False}
    for form in (node, *children):
        at = NodePath.parse(form["path"])
        form["edges"] = places.destinations.get(at, 0)
        form["children"] = len(places.children.get(at, ()))
    return {
        "node": node,
        "children": worst_nodes_first(children)[skip : skip + PAGE_MAX],
        "count": len(listed),
        "skip": skip,
        "answers": answers,
        "held": held_forms(centre) if path.is_root else [],
    }


def found_form(places: Places, words: str) -> Form:
    """`{places: [{path, syncTarget, edges, children}], more}`: the nodes that words fit, some."""
    found = sorted(places.found(words), key=lambda it: (len(it.names), it))
    forms = [
        {
            "path": str(path),
            "syncTarget": places.targets[path].source.name if path in places.targets else "",
            "edges": places.destinations.get(path, 0),
            "children": len(places.children.get(path, ())),
        }
        for path in found[:FOUND_MAX]
    ]
    return {"places": forms, "more": max(0, len(found) - FOUND_MAX)}
