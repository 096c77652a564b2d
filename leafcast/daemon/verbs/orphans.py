"""What nodes hold of terms that the centre does not know: listed, and ended by a person's word.

Each node is asked; a node tells which children it has, so that those are found, too, whose records
the centre lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from controllers.issuing.nodes import enrol_nodes, node_record
from leafcast.ask.api import ApiError, verb
from leafcast.ask.client import CentreAsks
from leafcast.ask.decode import BadAnswer, OrphanForm, read_orphans
from leafcast.centre.centre import Centre, running
from relay.adapters.server.nkey_pairs import BadNkey, check_public_nkey
from relay.ports import BusBroken
from relay.shell.asker import AskFailed
from schemas.records.asks import ORPHANS
from schemas.values.identity import MailKey, NodePath
from schemas.values.refusals import BadIdentity
from schemas.values.wire import asdict

ASKED_MAX = 500
ASKED_AT_ONCE = 32
PAGES_MAX = 1000
"""Of one node's orphans: those of a million."""
SECONDS_MAX = 30.0

Json = dict[str, Any]


@dataclass(slots=True)
class Survey:
    """What the nodes that answered hold: by term and key, with the nodes that hold it."""

    found: dict[tuple[str, str], tuple[OrphanForm, list[NodePath]]] = field(default_factory=dict)
    silent: list[NodePath] = field(default_factory=list)
    absent: list[NodePath] = field(default_factory=list)

    def take(self, path: NodePath, orphans: list[OrphanForm]) -> None:
        for orphan in orphans:
            self.found.setdefault((orphan.term, orphan.key), (orphan, []))[1].append(path)

    def nodes(self, terms: Collection[str]) -> dict[NodePath, str]:
        """The public keys of nodes of these terms, as those above them hold them."""
        found: dict[NodePath, str] = {}
        for orphan, holders in self.found.values():
            if orphan.kind != "node" or orphan.term not in terms:
                continue
            with suppress(BadIdentity, BadNkey):
                path = NodePath.parse(orphan.name)
                # What a node says of others than those below it counts for nothing.
                if any(where.holds(path) and path != where for where in holders):
                    found[path] = check_public_nkey(orphan.nkey, str(path))
        return found

    def form(self, known: Container[str]) -> Json:
        """`{orphans: [{kind, namespace, name, generation, term, path, nodes, known}], …}`.

        `path` is one of the nodes that hold it, `nodes` how many do; `known` says whether the
        centre has another form of it, under one of the known keys. Who is `absent: [path]` never
        joined, as far as their parents know; who is `silent: [path]` did not answer.
        """
        listed = sorted(self.found.values(), key=lambda it: (it[0].term, it[0].kind, it[0].name))
        return {
            "orphans": [
                {
                    **asdict(orphan),
                    "path": str(min(holders)),
                    "nodes": len(holders),
                    "known": orphan.key in known,
                }
                for orphan, holders in listed
            ],
            "silent": [str(path) for path in sorted(self.silent)],
            "absent": [str(path) for path in sorted(self.absent)],
        }


class Orphans:
    """The verbs `orphans` and `withdraw` of a daemon; both raise BusBroken while it starts."""

    def __init__(self, centre: Centre, asks: CentreAsks) -> None:
        self._centre = centre
        self._asks = asks

    @verb("orphans")
    async def orphans(self) -> Json:
        """What nodes hold and the centre does not know, and who did not answer; see Survey."""
        survey = await self._survey()
        return survey.form(running(self._centre.controllers).issuer.records)

    async def keys(self) -> frozenset[MailKey]:
        """Under which keys nodes hold something that the centre does not know."""
        return frozenset(MailKey(key) for _, key in (await self._survey()).found)

    @verb("withdraw")
    async def withdraw(self, term: str = "", *, every: bool = False) -> Json:
        """End what a term (16 hex digits) issued and the centre does not list: `{terms, nodes}`.

        With `every` each term that nodes report now. Their nodes stay: `nodes` are the paths of
        those that the centre knows again. Raises ApiError.
        """
        issuer = running(self._centre.controllers).issuer
        survey = await self._survey()
        reported = sorted({orphan.term for orphan, _ in survey.found.values()})
        if not every and term not in reported:
            known = ", ".join(reported) or "none"
            raise ApiError(
                "NotFound", f"no node reports an orphan of term {term}", f"terms: {known}"
            )
        terms = reported if every else [term]
        lost = survey.nodes(terms)
        lost = {p: k for p, k in lost.items() if node_record(issuer, p) is None}
        if lost:
            # A node is removed by its name only: `leafcast node remove`.
            await enrol_nodes(issuer, lost)
        for one in terms:
            issuer.withdraw(one)
        return {"terms": terms, "nodes": [str(path) for path in sorted(lost)]}

    async def _survey(self) -> Survey:
        running(self._centre.controllers)
        survey, limit = Survey(), asyncio.Semaphore(ASKED_AT_ONCE)
        asked: set[NodePath] = set()

        async def ask(path: NodePath, group: asyncio.TaskGroup) -> None:
            async with limit:
                children = await self._ask(path, survey)
            for name in children:
                below = path.child(name)
                if len(asked) < ASKED_MAX and below not in asked:
                    asked.add(below)
                    group.create_task(ask(below, group))

        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as group:
                await ask(NodePath(), group)
        return survey

    async def _ask(self, path: NodePath, survey: Survey) -> list[str]:
        """The children of a node, after taking what it and they hold."""
        after, children = "", list[str]()
        try:
            for _ in range(PAGES_MAX):
                answer = await self._asks.ask(path, ORPHANS, {"after": after})
                page = read_orphans(answer, after)
                survey.take(path, page.found)
                children = [name for name in page.children if name not in page.absent]
                after = page.after
                if not after:
                    survey.absent += map(path.child, page.absent)
                    return children
        except (AskFailed, BusBroken, BadAnswer):
            pass
        survey.silent.append(path)
        return children
