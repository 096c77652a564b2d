"""What a running tree says of itself in JSON: its nodes, its placements, who has what.

A node's counts are what its parent counts for it, so that each tier adds up to the one above.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from controllers.core.status.status import UNCOUNTED, undelivered
from controllers.issuing.nodes import node_record
from controllers.issuing.nodes import nodes as node_records
from leafcast.ask.remote import standing_of
from leafcast.centre.centre import Centre
from leafcast.daemon.verbs.selection import selection_form
from leafcast.node.answers import children_counts, figures_of
from relay.core.asks.answers import destination_row, wave_of
from relay.core.link.session import CATCHING_UP
from relay.core.node_answers import node_answer
from relay.core.records.accepted import is_delta
from relay.core.reports.reduce import EMPTY, merge_all
from relay.core.view import NodeView
from schemas.records.maintenance import NONE, maintenance_of
from schemas.records.placements import placement_of as placement_named
from schemas.records.placements import short_title, title
from schemas.records.records import CENTRE, Profile
from schemas.reports.reports import Count
from schemas.reports.states import NEVER_JOINED
from schemas.values.identity import MailKey, NodePath
from schemas.values.wire import asdict
from schemas.values.wording import some_of

Form = dict[str, Any]
NOTHING = Count(EMPTY, exact=True)

UNREACHABLE_NAMED_MAX = 20
PLACEMENTS_NAMED_MAX = 8
HELD_MAX = 64
"""So many holds are told of with the tree."""
REVOKED = "revoked"
"""The state of a node whose key is void, whatever its parent says of it."""


def tree_form(centre: Centre, elsewhere: Mapping[NodePath, Mapping[str, Any]]) -> Form:
    """The tree with a form for each node, children after their parents.

    `edges` counts those at or below a node; `destinations` counts each once for each placement.
    `elsewhere` holds the answers of relays that do not run here (leafcast.ask.remote).
    """
    paths = _paths(centre)
    forms = node_forms(centre, elsewhere, paths, _relays(paths), targets_of(centre))
    edges = _edges_within(form["path"] for form in forms if form["role"] == "edge")
    for form in forms:
        form["edges"] = edges[NodePath.parse(form["path"])]
    return {"up": centre.up.is_set(), "nodes": forms, "held": held_forms(centre)}


def node_forms(
    centre: Centre,
    elsewhere: Mapping[NodePath, Mapping[str, Any]],
    paths: Collection[NodePath],
    relays: Collection[NodePath],
    targets: Mapping[NodePath, Profile],
) -> list[Form]:
    """A form for each of these nodes, without how many edges lie within it.

    `relays` are the nodes with others below them, `targets` what is known of destinations.
    """
    above = {path.parent for path in paths if path.names}
    counts = _counts(centre, _in_force(centre), above)
    forms = [_node_form(centre, path, counts.get(path, NOTHING), relays) for path in paths]
    for path, form in zip(paths, forms, strict=True):
        profile = targets.get(path)
        maintenance = maintenance_of(profile.annotations) if profile is not None else NONE
        form["sync_target"] = profile.source.name if profile is not None else ""
        form["maintenance_until_ms"] = maintenance.until_ms
        form["maintenance_reason"] = maintenance.reason
        answer = elsewhere.get(path) or {}
        form["is_edge"] = form["role"] == "edge" or answer.get("role") == "edge"
        told = elsewhere.get(path.parent) if path.names else None
        if told is not None:
            form.update(_told(told["children"].get(path.name)))
        if path in elsewhere and not form["here"]:
            form["objects_applied"] = answer.get("objectsApplied")
        form["state"] = _word(centre, path, form["state"])
    return forms


def answers_here(centre: Centre) -> dict[NodePath, Form]:
    """What the nodes that run here would answer, by path."""
    running = {path: runtime.node for path, runtime in list(centre.nodes.items())}
    return {path: node_answer(node, str(path)) for path, node in running.items() if node}


def relays_not_here(centre: Centre) -> set[NodePath]:
    """The nodes that have others below them and run elsewhere."""
    return _relays(known_paths(centre)) - centre.nodes.keys()


def edges_not_here(centre: Centre) -> set[NodePath]:
    """The nodes without others below them that run elsewhere."""
    paths = set(known_paths(centre))
    return paths - _relays(paths) - centre.nodes.keys()


def placement_names(centre: Centre) -> list[str]:
    """The placements there are; one whose removal is held has no object any more."""
    if centre.controllers is None:
        return []
    translator = centre.controllers.translator
    return sorted(translator.workloads.objects.keys() | translator.placements.held.keys())


def listed(placements: Iterable[str]) -> str:
    """Some of these placements, as commands take them."""
    return some_of([short_title(name) for name in sorted(placements)], PLACEMENTS_NAMED_MAX)


def placement_of(centre: Centre, key: str) -> str:
    """The name of the placement with this mail key, if the centre knows it; else ""."""
    node = _node(centre, NodePath())
    accepted = node.records.get(MailKey(key)) if node else None
    return placement_named(accepted.record.source) or "" if accepted is not None else ""


def held_forms(centre: Centre) -> list[Form]:
    """What holds placements, by what their statuses say, each with its `placement`; some of them.

    To ask of all of them what holds each would cost as much as all that they select.
    """
    controllers = centre.controllers
    if controllers is None:
        return []
    objects = controllers.translator.workloads.objects
    statuses = ((name, objects[name].get("status") or {}) for name in sorted(objects))
    holds = (
        {"placement": name, **hold} for name, status in statuses for hold in status.get("held", ())
    )
    return list(islice(holds, HELD_MAX))


def condition_forms(centre: Centre, name: str) -> list[Form]:
    """The conditions of a placement's status, as Kubernetes has them."""
    controllers = centre.controllers
    objects = controllers.translator.workloads.objects if controllers is not None else {}
    return list((objects.get(name, {}).get("status") or {}).get("conditions") or ())


def placement_form(centre: Centre, name: str, *, by_node: bool) -> Form:
    """What became of one placement; `by_node` adds what each node counts.

    With that come the placement's mail key, and the nodes to be asked for those below them.
    """
    controllers = centre.controllers
    assert controllers is not None
    key = controllers.translator.source(name).key
    root = centre.nodes[NodePath()].node
    is_known = root is not None and key in root.records
    count = root.count(key) if root is not None and is_known else UNCOUNTED
    counts = _counts(centre, (key,)) if is_known else {}
    # Below the centre nobody knows what was not sent.
    shown = undelivered(count) if controllers.translator.placements.faults.get(name) else count
    direct = [path for path in counts if len(path.names) == 1]
    form = {
        "name": name,
        **count_form(shown),
        **selection_form(controllers, name),
        "problem": controllers.errors.get(title(name), ""),
        "held": controllers.summarizer.held(name),
        "keptBack": controllers.summarizer.kept_back(name),
        "unreachable": _unreachable(centre, counts),
        "children": [
            _counted(centre, path, counts[path], _relays(direct)) for path in sorted(direct)
        ],
    }
    if by_node:
        whole = {NodePath(): count, **counts}
        relays = _relays(known_paths(centre))
        form["nodes"] = [_counted(centre, path, whole[path], relays) for path in sorted(whole)]
        elsewhere = _held_elsewhere(centre, counts)
        form |= {"key": key, "elsewhere": [str(path) for path, _ in elsewhere]}
    return form


def silent_below(elsewhere: Mapping[NodePath, Mapping[str, Any]]) -> list[Form]:
    """The nodes that relays elsewhere cannot reach, the longest silent first; some of them."""
    silent = [
        (child["silentSinceMs"], path.child(name), standing_of(child).word)
        for path, answer in elsewhere.items()
        for name, child in answer["children"].items()
        if child["silentSinceMs"] is not None
    ]
    return [
        {"path": str(path), "since_ms": since, "state": state, "destinations": 0}
        for since, path, state in sorted(silent)[:UNREACHABLE_NAMED_MAX]
    ]


def destination_forms(centre: Centre, name: str) -> Form:
    """The destinations of a placement that nodes here know one by one.

    `elsewhere` names the nodes that hold others, which one would have to ask.
    """
    controllers = centre.controllers
    assert controllers is not None
    key = controllers.translator.source(name).key
    counts = _counts(centre, (key,))
    return {
        "key": key,
        "destinations": [
            _destination(centre, path, count)
            for path, count in _outermost(counts)
            if count.summary.destinations == 1 and _is_edge(centre, path)
        ],
        "elsewhere": [str(path) for path, _ in _held_elsewhere(centre, counts)],
    }


def _outermost(counts: Mapping[NodePath, Count]) -> list[tuple[NodePath, Count]]:
    """The nodes behind which none is known, sorted by path."""
    within = {path.parent for path in counts if not path.is_root}
    return [(path, counts[path]) for path in sorted(counts.keys() - within)]


def _held_elsewhere(
    centre: Centre, counts: Mapping[NodePath, Count]
) -> list[tuple[NodePath, Count]]:
    """The relays that count destinations which are not known here one by one."""
    outermost = _outermost(counts)
    return [
        (path, count)
        for path, count in outermost
        if count.summary.destinations and not _is_edge(centre, path)
    ]


def reached(centre: Centre) -> dict[NodePath, str]:
    """In which state each node is, by its parent's word."""
    words: dict[NodePath, str] = {}
    for path, runtime in list(centre.nodes.items()):
        node = runtime.node
        for name in node.children() if node else ():
            assert node is not None
            if standing := node.standing_of(name):
                words[path.child(name)] = standing.word
    return words


def count_form(count: Count, path: NodePath = CENTRE) -> Form:
    """A count of the node at the path in JSON, of destinations; it is exact only if `complete`.

    `destinations` have joined; who never did counts apart.
    """
    summary = count.summary
    return {
        "destinations": summary.joined,
        "never_joined": summary.never_joined,
        "maintained": summary.maintained,
        "states": dict(summary.states),
        "health": dict(summary.health),
        "complete": count.exact,
        "blocking": [str(path.child(name)) for name in count.waiting_for],
        "oldest_ms": summary.oldest_ms,
        "exceptions": list(map(asdict, summary.exceptions)),
        "kept": summary.kept,
        "kept_copies": list(map(asdict, summary.kept_copies)),
        "repaired": summary.repaired,
        "repairs": list(map(asdict, summary.repairs)),
    }


def _node_form(centre: Centre, path: NodePath, counts: Count, relays: Collection[NodePath]) -> Form:
    runtime, node = centre.nodes.get(path), _node(centre, path)
    driver = runtime.driver if runtime else None
    if path.is_root and node is not None:
        counts = _together(node.count(key) for key in _in_force(centre))
    return {
        "path": str(path),
        "role": _role(centre, path, relays),
        "here": runtime is not None,
        **_state(centre, path),
        "children": len(node.children()) if node else 0,
        "lag": _lag(centre, path),
        "refused": 0,
        "contested": 0,
        "unsaid": 0,
        "mail_written": driver.counters.mail_written if driver else 0,
        "snapshots_written": driver.counters.snapshots_written if driver else 0,
        "blobs_kept": driver.counters.blobs_kept if driver else 0,
        "objects_applied": runtime.objects_applied if runtime else None,
        **figures_of(counts),
    }


def _edges_within(edges: Iterable[str]) -> Counter[NodePath]:
    """How many of these edges lie at or below each node."""
    counts: Counter[NodePath] = Counter()
    for edge in map(NodePath.parse, edges):
        counts.update(NodePath(edge.names[:depth]) for depth in range(len(edge.names) + 1))
    return counts


def _told(child: Mapping[str, Any] | None) -> Form:
    """What a relay elsewhere says of a child of its."""
    if child is None:
        return {"state": "connecting"}
    standing = standing_of(child)
    figures = {name: child.get(name, 0) for name in ("lag", "refused", "contested", "unsaid")}
    said = {"state": standing.word, "silent_since_ms": standing.silent_since_ms, **figures}
    return {**said, **child.get("counts", {})}


def _state(centre: Centre, path: NodePath) -> Form:
    """`state` is a word of `Standing`, stale (shown an old view) or unknown.

    `silent_since_ms` goes with those that are stopped or unreachable. What the parent says goes
    before what a node that runs here says of itself: one whose key was replaced is up for nobody.
    """
    node, above = _node(centre, path), _parent(centre, path)
    standing = above.standing_of(path.name) if above else None
    word = "unknown" if above is None else "connecting" if standing is None else standing.word
    if path.is_root:
        word = "up"
    if word in ("up", CATCHING_UP, NEVER_JOINED) and (path.is_root or path in centre.nodes):
        ready = node is not None and node.ready and word != NEVER_JOINED
        stale = node is not None and node.own_state()["stale"]
        word = "connecting" if not ready else "stale" if stale else word
    since_ms = standing.silent_since_ms if standing else None
    return {"state": _word(centre, path, word), "silent_since_ms": since_ms}


def _word(centre: Centre, path: NodePath, word: str) -> str:
    """The word for a node's state, unless its key is void; who never joined had none."""
    controllers = centre.controllers
    record = node_record(controllers.issuer, path) if controllers is not None else None
    is_void = record is not None and not record.nkey and word != NEVER_JOINED
    return REVOKED if is_void else word


def _role(centre: Centre, path: NodePath, relays: Collection[NodePath]) -> str:
    """`relays` are nodes with others below them; one without any may be a relay as well."""
    if path.is_root:
        return "centre"
    runtime, above = centre.nodes.get(path), _parent(centre, path)
    if runtime is not None:
        return "edge" if runtime.attached else "relay"
    if above is not None and path not in relays:
        return "edge" if above.destination_of(path.name) is not None else "relay"
    return "relay" if path in relays else "edge"


def _relays(paths: Iterable[NodePath]) -> set[NodePath]:
    return {path.parent for path in paths if path.names}


def _lag(centre: Centre, path: NodePath) -> int:
    node, above = _node(centre, path), _parent(centre, path)
    if above is None:
        return 0
    return above.lag(path.name, node.read_through if node else None)


def _counted(centre: Centre, path: NodePath, count: Count, relays: Collection[NodePath]) -> Form:
    role = _role(centre, path, relays)
    return {"path": str(path), "role": role, **_state(centre, path), **count_form(count, path)}


def _is_edge(centre: Centre, path: NodePath) -> bool:
    """Whether a node is a destination itself: its parent holds its profile, or it runs here."""
    above, runtime = _parent(centre, path), centre.nodes.get(path)
    is_destination = above is not None and above.destination_of(path.name) is not None
    return is_destination or (runtime is not None and runtime.attached)


def _destination(centre: Centre, path: NodePath, count: Count) -> Form:
    state = _state(centre, path)
    return {
        **destination_row(str(path), {**count_form(count), "wave": wave_of(count.summary)}),
        "silent_since_ms": state["silent_since_ms"],
        "left": state["state"] == "stopped",
    }


def _unreachable(centre: Centre, counts: Mapping[NodePath, Count]) -> list[Form]:
    """The nodes whose silence makes destinations unreachable, the longest silent first.

    Who is behind one of them is not named: it is counted there.
    """
    silent = {
        path: since
        for path, count in counts.items()
        if count.summary.states.get("unreachable")
        and (since := _state(centre, path)["silent_since_ms"]) is not None
    }
    outermost = [
        (since, path)
        for path, since in silent.items()
        if not any(other != path and other.holds(path) for other in silent)
    ]
    return [
        {
            "path": str(path),
            "since_ms": since,
            "state": _state(centre, path)["state"],
            "destinations": counts[path].summary.states.get("unreachable", 0),
        }
        for since, path in sorted(outermost)[:UNREACHABLE_NAMED_MAX]
    ]


def _counts(
    centre: Centre, keys: Collection[MailKey], above: Collection[NodePath] | None = None
) -> dict[NodePath, Count]:
    """What each node counts for at its parent, in these placements together; or below `above`."""
    counts_by_path: dict[NodePath, list[Count]] = defaultdict(list)
    for path in list(centre.nodes):
        if above is not None and path not in above:
            continue
        node = _node(centre, path)
        for key in keys if node else ():
            assert node is not None
            for child, count in children_counts(node, key).items():
                counts_by_path[path.child(child)].append(count)
    return {path: _together(counts) for path, counts in counts_by_path.items()}


def targets_of(centre: Centre) -> dict[NodePath, Profile]:
    """The SyncTargets in force, by where they hang."""
    records = centre.controllers.issuer.records.values() if centre.controllers is not None else ()
    return {record.path: record for record in records if isinstance(record, Profile)}


def _together(counts: Iterable[Count]) -> Count:
    """The counts of several placements as one."""
    listed = list(counts)
    summary = merge_all(count.summary for count in listed)
    return Count(summary, all(count.exact for count in listed))


def _in_force(centre: Centre) -> list[MailKey]:
    node = _node(centre, NodePath())
    records = node.records.values() if node else ()
    return [accepted.key for accepted in records if is_delta(accepted)]


def _paths(centre: Centre) -> list[NodePath]:
    return sorted(set(known_paths(centre)))


def known_paths(centre: Centre) -> Iterator[NodePath]:
    """The nodes that run here, and those of the signed inventory; some twice."""
    yield from centre.nodes
    if centre.controllers is not None:
        for record in node_records(centre.controllers.issuer):
            yield record.path


def _node(centre: Centre, path: NodePath) -> NodeView | None:
    runtime = centre.nodes.get(path)
    return runtime.node if runtime else None


def _parent(centre: Centre, path: NodePath) -> NodeView | None:
    return None if path.is_root else _node(centre, path.parent)
