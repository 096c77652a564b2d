"""What a node answers to asks for it: who it is, the state of a placement, objects it holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from leafcast.node.copies_answer import CopyQuery, copies_answer
from leafcast.node.member_forms import MEMBERS_ASKED
from leafcast.node.object_proof import object_proof_answer
from leafcast.node.trace_answer import trace_answer
from relay.adapters.installed import installed_version
from relay.claims.edge_claim import REFUSED
from relay.core.asks.answers import BadAskArguments, objects_answer
from relay.core.node_answers import (
    HERE,
    node_answer,
    proof_answer,
    standing_answer,
    status_answer,
)
from relay.core.records.accepted import is_delta
from relay.core.reports.reduce import merge_all
from relay.core.view import NodeView
from relay.objects.expressions.cel import ExpressionRefused
from relay.objects.expressions.filters import DESTINATION, OBJECT, Filter
from relay.ports import BusBroken, CopiesPage
from relay.shell.asker import Answerer, AskFailed
from relay.shell.driver import Driver
from relay.space_port import Object, Space
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.asks import (
    CERTIFY,
    GET,
    NODE,
    ORPHANS,
    PROOF,
    REKEY,
    REPLACE,
    STATUS,
    TRACE,
    UPSYNCED,
    AskFault,
)
from schemas.records.records import AskRecord, NodeRecord
from schemas.reports.reports import Count
from schemas.values.codec import from_json
from schemas.values.identity import MailKey, NodePath

ORPHANS_PAGE_MAX = 1000


@dataclass(frozen=True, slots=True)
class AnsweringNode:
    """One run of a node, as asks find it."""

    path: NodePath
    driver: Driver
    # The workload execution cluster, at an edge.
    cluster: Callable[[], Space | None]
    # What a child brought up; see relay.ports.Bus.
    read_copies: Callable[[str, int], Awaitable[CopiesPage]]
    # By its key at its parent: see leafcast.node.credentials.key_at_parent.
    rekey: Callable[[Mapping[str, str]], Mapping[str, str]]
    sign: Callable[[AskRecord, Mapping[str, object]], Mapping[str, object]]
    # Has its server show a certificate, if one is named, and believe authorities.
    take_certificate: Callable[[str, str], Awaitable[None]]
    # What it is where it runs: its role, its server, its cluster, its disk.
    standing: Callable[[], Mapping[str, object]]
    # How its members stand: see leafcast.node.member_forms.
    members: Callable[[], Awaitable[list[dict[str, Any]]]]
    # Has a machine take a member's place: see leafcast.node.member_change.
    replace_member: Callable[[Mapping[str, str]], Awaitable[dict[str, Any]]]

    @property
    def node(self) -> NodeView:
        """What it knows; raises AskFailed before it began."""
        if not self.driver.started.is_set():
            raise AskFailed(AskFault("NotReady", f"{self.path} is starting", str(self.path)))
        return self.driver.node


def answerers(asked: AnsweringNode) -> dict[str, Answerer]:
    """What a node that runs here answers to asks for it, by verb."""

    async def node(record: AskRecord) -> object:
        driver = asked.driver
        said = node_answer(driver.node, str(asked.path))
        for name, figures in _counted_by_child(driver.node).items():
            said["children"][name]["counts"] = figures
        told = {
            **said,
            "version": installed_version("leafcast"),
            "mailWritten": driver.counters.mail_written,
            "noted": dict(driver.counters.noted),
            **asked.standing(),
        }
        if MEMBERS_ASKED in record.arguments:
            told["members"] = await asked.members()
        return asked.sign(record, told)

    async def status(record: AskRecord) -> object:
        wanted = read_filter(record.arguments.get("filter", ""), DESTINATION)
        takes = wanted.matches if wanted is not None else None
        said = status_answer(asked.node, str(asked.path), record.arguments, takes)
        if HERE in record.arguments:
            standing = asked.standing()
            refused = standing.get("claim") == REFUSED
            said["here"] = standing_answer(asked.node, record.arguments) | {
                "unclaimed": standing.get("unclaimed", "") if refused else ""
            }
        return said

    async def certify(record: AskRecord) -> object:
        said = record.arguments
        await asked.take_certificate(said.get("certificate", ""), said.get("authority", ""))
        return asked.sign(record, {"taken": True})

    async def orphans(record: AskRecord) -> object:
        return orphans_answer(asked.node, record.arguments)

    async def rekey(record: AskRecord) -> object:
        return asked.sign(record, asked.rekey(record.arguments))

    async def replace(record: AskRecord) -> object:
        return asked.sign(record, await asked.replace_member(record.arguments))

    return {
        REPLACE: replace,
        REKEY: rekey,
        GET: partial(_get, asked),
        STATUS: status,
        TRACE: partial(_trace, asked),
        NODE: node,
        ORPHANS: orphans,
        PROOF: partial(_proof, asked),
        CERTIFY: certify,
        UPSYNCED: partial(_upsynced, asked),
    }


def orphans_answer(node: NodeView, arguments: Mapping[str, str]) -> dict[str, object]:
    """A page of what is in force here and of no term that the centre knows, and the children.

    `{orphans: [{key, kind, namespace, name, generation, term, nkey}], children: [name],
    absent: [name], next: key}`; a node has its public key beside it, `absent` are children that
    never joined.
    """
    after = arguments.get("after", "")
    found = sorted((it for it in node.orphans() if it.key > after), key=lambda it: it.key)
    page = found[:ORPHANS_PAGE_MAX]
    return {
        "orphans": [{**it._asdict(), "nkey": _nkey(node, it.key)} for it in page],
        "children": sorted(node.children()),
        "absent": sorted(name for name in node.children() if not _has_joined(node, name)),
        "next": page[-1].key if len(found) > len(page) else "",
    }


def _has_joined(node: NodeView, child: str) -> bool:
    standing = node.standing_of(child)
    return standing is not None and standing.joined


def _nkey(node: NodeView, key: MailKey) -> str:
    record = node.records[key].record
    return record.nkey if isinstance(record, NodeRecord) else ""


def _counted_by_child(node: NodeView) -> dict[str, dict[str, object]]:
    """What each child counts for in all placements together, in the words of `tree_facts`."""
    found: dict[str, list[Count]] = {name: [] for name in node.children()}
    for held in node.records.values():
        if is_delta(held):
            # Of a destination where no node hangs nothing else is told, either.
            for name, count in children_counts(node, held.key).items():
                if name in found:
                    found[name].append(count)
    return {
        name: figures_of(
            Count(merge_all(it.summary for it in counts), all(it.exact for it in counts))
        )
        for name, counts in found.items()
    }


def children_counts(node: NodeView, key: MailKey) -> dict[str, Count]:
    """What each child counts for in a placement, and whether that is exact."""
    whole = node.count(key)
    return {
        name: Count(summary, whole.exact or name not in whole.waiting_for)
        for name, summary in node.child_counts(key).items()
    }


def figures_of(count: Count) -> dict[str, object]:
    """How many destinations have joined, how many of them are well, and how many are not."""
    summary = count.summary
    return {
        "destinations": summary.joined,
        "synced": summary.states.get("synced", 0),
        "healthy": summary.health.get("healthy", 0),
        "failing": summary.states.get("failing", 0),
        "degraded": summary.health.get("degraded", 0),
        "unreachable": summary.states.get("unreachable", 0),
        "complete": count.exact,
    }


async def _trace(asked: AnsweringNode, record: AskRecord) -> object:
    driver = asked.driver
    return trace_answer(asked.node, driver.traces, record.arguments, driver.now_ms)


async def _proof(asked: AnsweringNode, record: AskRecord) -> object:
    node, path, said = asked.node, str(asked.path), record.arguments
    if not said.get("resource"):
        return proof_answer(node, path, said)
    return await object_proof_answer(node, asked.driver.load, path, said)


async def _get(asked: AnsweringNode, record: AskRecord) -> object:
    objects = await _objects(asked, record.arguments)
    if not record.arguments.get("kept"):
        return objects_answer(objects, record.arguments)
    kept = _kept_of(asked.node, record.arguments, objects)
    # Who knows nothing of this lists all, and does not say so.
    return {**objects_answer(kept, record.arguments), "kept": True}


async def _objects(asked: AnsweringNode, arguments: Mapping[str, str]) -> list[Object]:
    space, path = asked.cluster(), str(asked.path)
    if space is None:
        raise AskFailed(AskFault("NoCluster", f"{path} has no cluster of its own", path))
    group, resource = arguments.get("group", ""), arguments.get("resource", "")
    namespace, name = arguments.get("namespace", ""), arguments.get("name", "")
    if not resource:
        raise BadAskArguments("resource: it is missing; name a plural such as configmaps")
    if name:
        found = await space.get(ObjectKey(group, resource, namespace, name))
        return [] if found is None else [found]
    selector = read_selector(arguments.get("selector", ""))
    listing = await space.list(group, resource, namespace=namespace, selector=selector)
    return list(listing.objects)


def _kept_of(
    node: NodeView, arguments: Mapping[str, str], objects: Sequence[Object]
) -> list[Object]:
    """Those that nothing wants any more, and that are kept."""
    kind = (arguments.get("group", ""), arguments["resource"])
    placed = [(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in objects]
    keys = [ObjectKey(*kind, *place) for place in placed]
    return [obj for key, obj in zip(keys, objects, strict=True) if node.is_kept(key)]


async def _upsynced(asked: AnsweringNode, record: AskRecord) -> object:
    node, path, said = asked.node, str(asked.path), record.arguments
    child, after = said.get("child", ""), said.get("after", "")
    if child and child not in node.children():
        raise AskFailed(AskFault("NoSuchNode", f"{path} has no child {child}", path))
    wanted, read = _wanted(said), asked.read_copies
    try:
        return await copies_answer(node, read, asked.path, wanted, child=child, after=after)
    except BusBroken as error:
        raise AskFailed(AskFault("NotReady", str(error), path)) from error


def _wanted(arguments: Mapping[str, str]) -> CopyQuery:
    if not arguments.get("resource"):
        raise BadAskArguments("resource: it is missing; name a plural such as configmaps")
    return CopyQuery(
        arguments.get("group", ""),
        arguments["resource"],
        arguments.get("namespace", ""),
        arguments.get("name", ""),
        read_selector(arguments.get("selector", "")),
        read_filter(arguments.get("filter", ""), OBJECT),
    )


def read_filter(text: str, variables: Mapping[str, object]) -> Filter | None:
    """An expression over these variables, none if nothing is said; raises BadAskArguments."""
    try:
        return Filter(text, variables) if text else None
    except ExpressionRefused as error:
        raise BadAskArguments(f"filter: {error}") from error


def read_selector(text: str) -> LabelSelector | None:
    """A label selector said as JSON, none if nothing is; raises BadAskArguments."""
    if not text:
        return None
    try:
        form = from_json(text)
        return LabelSelector.from_kubernetes(form)
    except (ValueError, AttributeError, TypeError) as error:
        raise BadAskArguments(f"selector: {error}") from error
