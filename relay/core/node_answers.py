"""What a node answers when it is asked for its own state, or for a placement's.

Lists come page by page, as in `relay.core.asks.answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from relay.core.asks.answers import BadAskArguments, Json, destination_row, limit_of, paged, wave_of
from relay.core.records.accepted import is_delta
from relay.core.reports.reduce import EMPTY
from relay.core.view import NodeView
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Summary
from schemas.values.identity import KEYS_KEY, MailKey, check_mail_key
from schemas.values.refusals import BadIdentity

HERE = "here"
"""The argument by which a status is asked for with how the placement stands at the node."""
MISSING_NAMED_MAX = 4
CLAIMERS_NAMED_MAX = 8
OBJECT_WORDS = ("group", "resource", "namespace", "name")
"""The arguments that name an object."""


def node_answer(node: NodeView, path: str) -> Json:
    """Who the node is, and how it is with its parent and its children."""
    children = {
        name: {
            "silentSinceMs": figures.standing.silent_since_ms,
            "inSession": figures.standing.in_session,
            "inStep": figures.standing.in_step,
            "left": figures.standing.left,
            "joined": figures.standing.joined,
            "lag": node.lag(name),
            "refused": figures.refused,
            "contested": figures.contests,
            "unsaid": node.unsaid_of(name),
            "destination": node.destination_of(name) or "",
            "nkey": figures.nkey,
        }
        for name in node.children()
        if (figures := node.figures_of(name))
    }
    return {"path": path, "ready": node.ready, "children": children, **node.own_state()}


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
    key = placement_of(arguments)
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

    limit = limit_of(arguments)
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


def proof_answer(node: NodeView, path: str, arguments: Mapping[str, str]) -> Json:
    """The signed messages of placements that the node holds, and that of the keys in force, in hex.

    Without the placements' bodies: who opens one knows what is in it by a hash that is signed.
    Arguments: `placement` (its mail key; without it all), `after` (a mail key), `limit`.
    """
    after, wanted = arguments.get("after", ""), arguments.get("placement", "")
    only = placement_of(arguments) if wanted else None
    held = node.records
    keys = held.get(KEYS_KEY)
    found = sorted(
        key for key, it in held.items() if is_delta(it) and key > after and only in (None, key)
    )

    def said(key: MailKey) -> Json:
        return {"key": key, "message": held[key].head_data().hex()}

    page, following = paged(found, limit_of(arguments), str, said)
    message = keys.data.hex() if keys is not None else ""
    return {"path": path, "keys": message, "records": page, "next": following}


def standing_answer(node: NodeView, arguments: Mapping[str, str]) -> Json:
    """How it is with a placement here: what a status answer has in `here`.

    Arguments: `placement`; `child` is the next node on the way to who is asked about; `resource`,
    with `group`, `namespace` and `name`, an object there.
    """
    key = placement_of(arguments)
    it = node.record_here(key)
    found: Json = {
        "nowMs": it.now_ms,
        "stale": it.stale,
        "outdated": it.outdated,
        "orphaned": it.orphaned,
        "headOnly": it.head_only,
        "missing": [str(address) for address in it.missing[:MISSING_NAMED_MAX]],
        "missingCount": len(it.missing),
        "refusedMs": round(it.refused_seconds * 1000) if it.refused_seconds is not None else None,
    }
    child = arguments.get("child", "")
    if (figures := node.figures_of(child)) is not None:
        standing = figures.standing
        found["child"] = {
            "silentSinceMs": standing.silent_since_ms,
            "left": standing.left,
            "joined": standing.joined,
            "inSession": standing.in_session,
            "inStep": standing.in_step,
            "lag": node.lag(child),
            **_counts(node.child_counts(key).get(child, EMPTY)),
        }
    if arguments.get("resource"):
        obj = ObjectKey(*(arguments.get(word, "") for word in OBJECT_WORDS))
        found["copy"] = _copy(node, key, obj)
    return found


def _copy(node: NodeView, placement: MailKey, key: ObjectKey) -> Json | None:
    """What became of one copy here; None where there is no destination."""
    it = node.copy(placement, key)
    if it is None:
        return None
    seen, judged = it.observed, it.judged
    state, health, sample = judged if judged is not None else ("", "", None)
    goes = None if it.wanted or it.kept or seen is None else node.prune_wait(key)
    return {
        "wanted": it.wanted,
        "claimed": it.claimed,
        "known": seen is not None,
        "present": seen is not None and seen.present,
        "kept": it.kept,
        "state": state,
        "health": health,
        "reason": sample.reason if sample is not None else it.why_kept,
        "error": seen.error if seen is not None else "",
        "waits": seen.waits if seen is not None else "",
        "staysAs": goes.value if goes is not None else "",
        "claimers": list(it.claimers[:CLAIMERS_NAMED_MAX]),
    }


def _counts(summary: Summary) -> Json:
    return {
        "states": dict(summary.states),
        "health": dict(summary.health),
        "exceptions": [
            {
                "object": x.object,
                "reason": x.reason,
                "count": x.count,
                "path": x.path,
                "severity": x.severity,
            }
            for x in summary.exceptions
        ],
    }


def placement_of(arguments: Mapping[str, str]) -> MailKey:
    """The placement that is asked about; raises BadAskArguments."""
    try:
        return check_mail_key(arguments.get("placement", ""))
    except BadIdentity as error:
        raise BadAskArguments(f"placement: {error}") from error
