"""What `leafcast doctor` thinks of the links: who is up, away, awaited, or not who it seems."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial

from leafcast.doctor.common import IN_SESSION, behind, each, log, revive, seconds
from leafcast.doctor.findings import Check, DoctorFacts, NodeFacts
from leafcast.show.durations import span_text
from schemas.records.maintenance import Maintenance
from schemas.reports.states import IN_MAINTENANCE, NEVER_JOINED
from schemas.values.wording import many, some_of

_warning = partial(Check, "Links", "warning")
_failure = partial(Check, "Links", "failure")
NAMED_MAX = 5
REFUSED_MAX = 100
"""Word of a change of parent or of a lost disk may be late, and is refused then, too."""
CONTESTED_FEW = 2
"""Once a program may have ended late, as the next was up already."""


def link_checks(facts: DoctorFacts) -> Iterator[Check]:
    silent = {node.path for node in facts.nodes if node.since_ms is not None}
    # What finds no room below a node is in what it says: the lowest one is it.
    above = {up for node in facts.nodes if node.unsaid for up in _above(node.path)}
    mute = {node.path for node in facts.nodes if not node.answers}

    def judge(node: NodeFacts) -> Check | None:
        if excess := _excess(node, above):
            return excess
        if node.state in (*IN_SESSION, NEVER_JOINED) or behind(node.path, silent):
            return None
        if node.since_ms is not None and node.maintenance_until_ms > facts.now_ms:
            return None
        if node.since_ms is not None:
            return _silent(facts, node)
        # What is behind one that does not answer, nobody knows.
        return None if behind(node.path, mute) else _awaited(facts, node)

    reached = sum(1 for node in facts.nodes if node.state in IN_SESSION)
    said = f"{reached} of {many(len(facts.nodes), 'node')} are up, by their parents' word"
    yield from each("Links", facts.nodes, judge, lambda _: said)
    if unplaced := [node.path for node in facts.nodes if node.unplaced]:
        yield _unplaced(unplaced)
    if absent := [node.path for node in facts.nodes if node.state == NEVER_JOINED]:
        yield _absent(absent)
    if worked_at := [node for node in facts.nodes if node.maintenance_until_ms > facts.now_ms]:
        yield _maintained(worked_at)


def _maintained(nodes: Sequence[NodeFacts]) -> Check:
    """All of them in one: a region may be in maintenance as a whole."""
    first = nodes[0]
    said = f"{IN_MAINTENANCE} {Maintenance(first.maintenance_until_ms, first.maintenance_reason)}"
    if len(nodes) == 1:
        said = f"{first.path} is {said}"
    else:
        named = some_of([node.path for node in nodes], NAMED_MAX)
        said = f"{many(len(nodes), 'node')} are in maintenance ({named}), the first {said}"
    return _warning(
        said,
        "nothing new goes there, and nothing is repaired there; nobody waits for it",
        f"it ends by itself; sooner: leafcast maintenance off {first.path}",
        first.path if len(nodes) == 1 else "",
    )


def _silent(facts: DoctorFacts, node: NodeFacts) -> Check:
    assert node.since_ms is not None
    if node.state == "revoked":
        said, cause = f"the key of {node.path} is revoked", "somebody said `leafcast node revoke`"
        remedy = f"let another key in: leafcast node add {node.path}; or leafcast node remove"
        return _warning(said, cause, f"{remedy} {node.path} --force", node.path)
    said = f"{node.path} is {node.state} for {span_text(seconds(facts, node.since_ms))}"
    said += f"; {node.destinations} destinations are behind it" if node.destinations > 1 else ""
    remove = f"if it will not come back: leafcast node remove {node.path} --force"
    if node.state == "stopped":
        cause = "it was shut down; what it holds stays as it is until it is back"
        return _warning(said, cause, f"start it there again; {remove}", node.path)
    cause = "its program or its server is down or frozen, or the network between is cut"
    remedy = revive(facts, node) if node.here else f"{revive(facts, node)}; {remove}"
    return _failure(said, cause, remedy, node.path)


def _absent(paths: Sequence[str]) -> Check:
    """All of them in one: stores may be registered by the thousand before the first one joins."""
    word = "was" if len(paths) == 1 else "were"
    return _warning(
        f"{many(len(paths), 'node')} {word} added and never joined: {some_of(paths, NAMED_MAX)}",
        "nobody runs there yet; they count apart, and hold nobody up",
        "where each belongs: leafcast join with its token (leafcast node add PATH --replace makes "
        "another); one that is not wanted: leafcast node remove PATH --force",
        paths[0] if len(paths) == 1 else "",
    )


def _unplaced(paths: Sequence[str]) -> Check:
    verb = "has" if len(paths) == 1 else "have"
    return _warning(
        f"{many(len(paths), 'edge')} {verb} no destination: {some_of(paths, NAMED_MAX)}",
        "no SyncTarget says that it hangs there (it was deleted, perhaps): nothing goes there",
        f"leafcast node register {paths[0]}",
        paths[0] if len(paths) == 1 else "",
    )


def _contested(node: NodeFacts) -> Check:
    return _failure(
        f"two programs run as {node.path}: its session was taken over "
        f"{many(node.contested, 'time')}",
        "its folder was copied, as with a machine that was cloned, and something starts each copy "
        "again when it ends; each takes the session from the other, so little gets through",
        f"end one of them where it runs; if you do not know it: leafcast node add {node.path} "
        "--replace makes a token, and voids the keys of both once it is used",
        node.path,
    )


def _refused(node: NodeFacts) -> Check:
    return _warning(
        f"{node.path} said {many(node.refused, 'thing')} to its parent that nobody takes",
        "it was broken into, its key is stolen, or its program is of another version; what others "
        "say is not touched, but waits behind it",
        f"if it is not what you think it is: leafcast node add {node.path} --replace "
        f"makes a token, and voids its key once it is used; leafcast node remove {node.path} "
        "--force ends it",
        node.path,
    )


def _excess(node: NodeFacts, above: Container[str]) -> Check | None:
    """What is wrong with who says too much; `above` are those above who is crowded."""
    if node.contested >= CONTESTED_FEW:
        return _contested(node)
    if node.refused > REFUSED_MAX:
        return _refused(node)
    return _crowded(node) if node.unsaid and node.path not in above else None


def _above(path: str) -> Iterator[str]:
    """The paths of all nodes above one, the centre's aside."""
    while path := path.rpartition("/")[0]:
        yield path


def _crowded(node: NodeFacts) -> Check:
    return _warning(
        f"at least {many(node.unsaid, 'thing')} said at or below {node.path} found no room at its "
        "parent",
        "placements want more status back than one node may say (wantSingletonReportedState, "
        "collectors), it has more placements that its parent does not know than that keeps in "
        "mind, or it says what nobody asked for; counts are not touched",
        "want less back: of fewer objects, or by collectors that combine; if nothing there wants "
        f"so much: leafcast node revoke {node.path} voids its key",
        node.path,
    )


def _awaited(facts: DoctorFacts, node: NodeFacts) -> Check:
    cause = "it starts just now, its key was replaced, or its parent is not reached"
    remedy = (
        f"look again in a moment; then see {log(facts, node)}"
        if node.here
        else f"start it there: leafcast join with its token (leafcast node add {node.path} "
        f"--replace makes one); or, if it is not wanted: leafcast node remove {node.path} --force"
    )
    said = f"{node.path} is not in session yet ({node.state})"
    return _warning(said, cause, remedy, node.path)
