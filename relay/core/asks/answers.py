"""What a node answers when it is asked: its own state, a placement's, or objects of its space.

Lists come page by page: `after` names the last entry of the page before, and an answer's `next`
what to name for the one that follows ("" at the end). Data of Secrets is never in an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Protocol, TypeVar

from relay.objects.merge import copied
from schemas.objects.secret_values import without_secret_values
from schemas.records.asks import REDACTED
from schemas.reports.reports import Cell, Summary
from schemas.values import codec
from schemas.values.identity import MailKey, check_mail_key
from schemas.values.refusals import BadIdentity

PAGE_MAX = 1000
PAGE_DIGITS = len(str(PAGE_MAX))
PAGE_BYTES_MAX = 512 * 1024
# kubectl keeps the whole object in it, a Secret's data included.

T = TypeVar("T")
Json = dict[str, Any]


class BadArguments(ValueError):
    """The arguments of an ask do not fit its verb; says which one, and what it should be."""


class ChildStanding(Protocol):
    """How it is with a child."""

    @property
    def silent_since_ms(self) -> int | None: ...
    @property
    def left(self) -> bool: ...
    @property
    def in_session(self) -> bool: ...
    @property
    def in_step(self) -> bool: ...
    @property
    def joined(self) -> bool: ...


class Generated(Protocol):
    """A record."""

    @property
    def generation(self) -> int: ...


class CountView(Protocol):
    """What is counted of a placement."""

    @property
    def summary(self) -> Summary: ...
    @property
    def exact(self) -> bool: ...
    @property
    def waiting_for(self) -> tuple[str, ...]: ...


class NodeView(Protocol):
    """What a node says of itself."""

    @property
    def ready(self) -> bool: ...
    @property
    def records(self) -> Mapping[MailKey, Generated]: ...
    def own_state(self) -> dict[str, Any]:
        """Figures for people; `refusedOf`, `contestedOf` and `unsaidOf` are by child."""
        ...

    def children(self) -> Iterable[str]: ...
    def standing_of(self, child: str) -> ChildStanding | None:
        """None if there is no such child."""
        ...

    def lag(self, child: str) -> int:
        """How many records wait to be read by the child."""
        ...

    def destination_of(self, child: str) -> str | None:
        """The destination that the child is, if it is an edge."""
        ...

    def nkey_of(self, child: str) -> str: ...
    def count(self, key: MailKey) -> CountView: ...
    def child_counts(self, key: MailKey) -> Mapping[str, Summary]: ...


def node_answer(node: NodeView, path: str) -> Json:
    """Who the node is, and how it is with its parent and its children."""
    own = node.own_state()
    refused, contested = own.pop("refusedOf"), own.pop("contestedOf")
    unsaid = own.pop("unsaidOf")
    standings = {name: standing for name in node.children() if (standing := node.standing_of(name))}
    children = {
        name: {
            "silentSinceMs": standing.silent_since_ms,
            "inSession": standing.in_session,
            "inStep": standing.in_step,
            "left": standing.left,
            "joined": standing.joined,
            "lag": node.lag(name),
            "refused": refused.get(name, 0),
            "contested": contested.get(name, 0),
            "unsaid": unsaid.get(name, 0),
            "destination": node.destination_of(name) or "",
            "nkey": node.nkey_of(name),
        }
        for name, standing in standings.items()
    }
    return {"path": path, "ready": node.ready, "children": children, **own}


def status_answer(
    node: NodeView,
    path: str,
    arguments: Mapping[str, str],
    takes: Callable[[Mapping[str, object]], bool] | None = None,
) -> Json:
    """The node's own summary of a placement, and what each child counts for.

    Arguments: `placement` (its mail key), `after` (a child's name), `limit`. A child with a
    `destination` is an edge; one without is a relay, to be asked itself. Of edges only those are
    told that `takes` takes, as `destination_row`.
    """
    key = _placement(arguments)
    held = node.records.get(key)
    if held is None:
        return {"path": path, "known": False, "children": [], "next": ""}
    after, count = arguments.get("after", ""), node.count(key)
    children = sorted(item for item in node.child_counts(key).items() if item[0] > after)

    def exact(name: str) -> bool:
        return count.exact or name not in count.waiting_for

    def said(child: tuple[str, Summary]) -> Json:
        name, summary = child
        found = {"name": name, "destination": node.destination_of(name) or "", "exact": exact(name)}
        found |= {**_counts(summary), "wave": wave_of(summary)}
        standing = node.standing_of(name)
        if standing is None:
            return {**found, "silentSinceMs": None, "left": False}
        told = {"silentSinceMs": standing.silent_since_ms, "left": standing.left}
        return {**found, **told, "joined": standing.joined}

    def wanted(child: tuple[str, Summary]) -> bool:
        name, summary = child
        if takes is None or not node.destination_of(name):
            return True
        told = {**_counts(summary), "wave": wave_of(summary), "complete": exact(name)}
        return takes(destination_row(f"{path.rstrip('/')}/{name}", told))

    limit = _limit(arguments)
    told = list(islice(filter(wanted, children), limit + 1))
    page, following = paged(told, limit, lambda item: item[0], said)
    return {
        "path": path,
        "known": True,
        "generation": held.generation,
        "exact": count.exact,
        "waitingFor": list(count.waiting_for),
        **_counts(count.summary),
        "children": page,
        "next": following,
    }


def destination_row(path: str, told: Mapping[str, Any]) -> dict[str, object]:
    """What became of a placement at one destination; `object` and `reason` name the worst."""
    worst = told["exceptions"][0] if told["exceptions"] else {"object": "", "reason": ""}
    return {
        "path": path,
        "state": next(iter(told["states"]), ""),
        "health": next(iter(told["health"]), ""),
        "wave": told["wave"],
        "complete": told["complete"],
        "object": worst["object"],
        "reason": worst["reason"],
    }


def objects_answer(objects: Iterable[Mapping[str, Any]], arguments: Mapping[str, str]) -> Json:
    """Objects in the order of namespace and name, redacted; `after` is `namespace/name`.

    Objects of one resource only, or the places would not be unique.
    """
    after = tuple(arguments.get("after", "/").split("/", 1))
    ranked = sorted(objects, key=_place)
    rest = [obj for obj in ranked if _place(obj) > after]
    page, following = paged(rest, _limit(arguments), lambda obj: "/".join(_place(obj)), redacted)
    return {"objects": page, "next": following}


def paged(
    entries: list[T], limit: int, name: Callable[[T], str], say: Callable[[T], Json]
) -> tuple[list[Json], str]:
    """As many entries as a page holds, one at least, and the name of the last if more follow."""
    page: list[Json] = []
    size = 0
    for at, entry in enumerate(entries):
        said = say(entry)
        size += len(codec.pack(said))
        if page and (size > PAGE_BYTES_MAX or len(page) >= limit):
            return page, name(entries[at - 1])
        page.append(said)
    return page, ""


def redacted(obj: Mapping[str, Any]) -> Json:
    """The object; of a Secret the keys of its data only."""
    shown: Json = without_secret_values(copied(obj), REDACTED)
    return shown


def wave_of(summary: Summary) -> str:
    """The wave of one destination, `<revision>.<place>`; "" in none, or if it is not said yet."""
    cell = Cell.parse(next(iter(summary.cells), "")) if len(summary.cells) == 1 else None
    return cell.gate if cell is not None else ""


def _counts(summary: Summary) -> Json:
    return {
        "states": dict(summary.states),
        "health": dict(summary.health),
        "exceptions": [
            {"object": x.object, "reason": x.reason, "count": x.count, "path": x.path}
            for x in summary.exceptions
        ],
    }


def _placement(arguments: Mapping[str, str]) -> MailKey:
    try:
        return check_mail_key(arguments.get("placement", ""))
    except BadIdentity as error:
        raise BadArguments(f"placement: {error}") from error


def _limit(arguments: Mapping[str, str]) -> int:
    text = arguments.get("limit", str(PAGE_MAX))
    if not text.isdecimal() or len(text) > PAGE_DIGITS or not 0 < int(text) <= PAGE_MAX:
        raise BadArguments(f"limit: {text!r} is not a number from 1 to {PAGE_MAX}")
    return int(text)


def _place(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])
