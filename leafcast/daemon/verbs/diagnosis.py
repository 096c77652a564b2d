"""Gathering what `leafcast doctor` judges: nodes that can be asked, and what the centre counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from controllers.centre import Controllers
from leafcast.ask.api import verb
from leafcast.ask.client import CentreAsks
from leafcast.ask.remote import Form, ask_nodes
from leafcast.centre.centre import Centre
from leafcast.daemon.tree_facts import placement_form, placement_names, tree_form
from leafcast.daemon.verbs.approvals import HELD_END, held_inventory, lost_records, lost_spaces
from leafcast.doctor.findings import (
    BackupFacts,
    Check,
    DoctorFacts,
    Expiry,
    LedgerFacts,
    NodeFacts,
    PlacementFinding,
    ReleaseFact,
)
from leafcast.node.member_forms import MEMBERS_ASKED
from leafcast.show.faults import keeps_from_running
from leafcast.show.wait_states import nowhere_text
from relay.claims.edge_claim import REFUSED
from relay.ports import Clock
from schemas.records.asks import AskFault
from schemas.records.hold_reasons import REMOVAL_HELD
from schemas.reports.causes import causes_first, said_in_form
from schemas.reports.reports import ExceptionSample
from schemas.reports.running import Running
from schemas.reports.states import AT_WORK
from schemas.values.identity import NodePath
from schemas.values.wire import to_builtins


@dataclass(slots=True)
class Diagnosis:
    """The verb `doctor` of a daemon: its nodes and placements, as `DoctorFacts` has them."""

    _centre: Centre
    _asks: CentreAsks
    _clock: Clock
    _expiries: Callable[[], Iterable[Expiry]]
    _troubles: Callable[[], Iterable[Check]]
    _backups: Callable[[], Awaitable[Mapping[str, Any]]]

    @verb("doctor")
    async def facts(self) -> dict[str, Any]:
        """`DoctorFacts` as JSON, without those about this machine; all nodes are asked."""
        centre, controllers = self._centre, self._centre.controllers
        paths = [NodePath.parse(form["path"]) for form in tree_form(centre, {})["nodes"]]
        said = await ask_nodes(self._asks, self._clock, paths, {}, {MEMBERS_ASKED: ""})
        answers = {path: it for path, it in said.items() if not isinstance(it, AskFault)}
        now_ms = self._clock.now().wall_ms
        forms = tree_form(centre, answers)["nodes"]
        records = controllers.issuer.records.values() if controllers else ()
        newest = max((record.generation for record in records), default=0)
        names = placement_names(centre)
        facts = DoctorFacts(
            now_ms=now_ms,
            folder="",
            free_bytes=0,
            ahead_ms=max(0, newest - now_ms),
            nodes=[self._node(form, said) for form in forms],
            placements=[placement_facts(placement_form(centre, it, by_node=False)) for it in names],
            ledger=_ledger(controllers) if controllers else LedgerFacts(),
            expiries=list(self._all_expiries(answers)),
            troubles=list(self._troubles()),
            sealed=controllers is None or controllers.keys.sealing.seals,
            hubs=centre.hub_troubles(),
            backups=BackupFacts(**await self._backups()),
            running=self._running(),
            releases=[ReleaseFact(*it) for it in controllers.releases.standings()]
            if controllers
            else (),
        )
        form: dict[str, Any] = to_builtins(facts)
        return form

    def _running(self) -> Running:
        """Who runs what, as it came up to the centre; nothing while that starts."""
        node = self._centre.nodes[NodePath()].node
        return node.running() if node is not None else Running()

    def _all_expiries(self, answers: Mapping[NodePath, Form]) -> Iterator[Expiry]:
        """What is known here, and what nodes elsewhere say."""
        yield from self._expiries()
        for path, answer in answers.items():
            if "certificateUntilMs" in answer and path not in self._centre.nodes:
                yield Expiry(
                    f"the certificate of {path}",
                    answer.get("certificateSinceMs", 0),
                    answer["certificateUntilMs"],
                    "children elsewhere will not reach it",
                    f"put a new one in its place where {path} runs: it is read within a minute",
                    about=str(path),
                )

    def _node(self, form: Form, answers: Mapping[NodePath, Form | AskFault]) -> NodeFacts:
        """One node; of one that runs here and does not answer, at least its disk and server."""
        path = NodePath.parse(form["path"])
        response, runtime = answers.get(path), self._centre.nodes.get(path)
        standing: Form = {}
        if runtime is not None and (response is None or isinstance(response, AskFault)):
            with suppress(FileNotFoundError):  # It never ran, so it has no folder yet.
                standing = runtime.standing()
        return node_facts(form, response, standing)


def node_facts(form: Form, response: Form | AskFault | None, standing: Form) -> NodeFacts:
    """A node by its line of the tree, and by what it answered; if it did not, by its standing."""
    answers = response is not None and not isinstance(response, AskFault)
    answer: Form = standing if response is None or isinstance(response, AskFault) else response
    return NodeFacts(
        path=form["path"],
        role=form["role"],
        state=form["state"],
        here=form["here"],
        since_ms=form["silent_since_ms"],
        destinations=form["edges"],
        lag=form["lag"],
        answers=answers,
        refusal=response.message if isinstance(response, AskFault) else "",
        refusal_reason=response.reason if isinstance(response, AskFault) else "",
        heard_ms=response.since_ms if isinstance(response, AskFault) else 0,
        starts=answer.get("serverStarts"),
        server_version=answer.get("serverVersion", ""),
        server_up_ms=answer.get("serverUpMs", 0),
        removals=answer.get("storeRemovals", 0),
        meant_durable=bool(answer.get("durable")),
        sync_seconds=answer.get("syncSeconds"),
        members=answer.get("members", ()),
        unplaced=_is_unplaced(form, answer),
        unclaimed=answer.get("unclaimed", "") if answer.get("claim") == REFUSED else "",
        free_bytes=answer.get("diskFree"),
        store_bytes=answer.get("storeBytes"),
        clock_ms=answer.get("clockMs", 0),
        # By the node's own clock: ours may have jumped.
        snapshot_age_ms=answer.get("snapshotAgeMs") if answer.get("snapshotGeneration") else None,
        withheld=answer.get("withheld", 0),
        orphaned=answer.get("orphaned", 0),
        refused=form["refused"],
        contested=form["contested"],
        unsaid=form["unsaid"],
        disbelieved=answer.get("disbelieved", 0),
        maintenance_until_ms=form["maintenance_until_ms"],
        maintenance_reason=form["maintenance_reason"],
    )


def placement_facts(form: Form) -> PlacementFinding:
    wrong = [item for item in form["exceptions"] if _is_stuck(item)]
    worst = causes_first(wrong, said_in_form)
    return PlacementFinding(
        name=form["name"],
        destinations=form["destinations"],
        unreachable=form["states"].get("unreachable", 0),
        complete=form["complete"],
        problem=_problem(form),
        held=form["held"],
        lack=form["lack"],
        undenatured=form["undenatured"],
        unreturned=form["unreturned"],
        blocking=list(form["blocking"]),
        stuck=[ExceptionSample(**item) for item in worst],
        nowhere=nowhere_text(form["name"]) if _selects_nowhere(form) else "",
    )


def _selects_nowhere(form: Form) -> bool:
    """Whether it is certain that it goes nowhere, and not said that it may."""
    somewhere = form["destinations"] or form["never_joined"] or not form["complete"]
    return not (somewhere or form["mayBeEmpty"] or form["problem"])


def _is_stuck(item: Form) -> bool:
    """Whether it does not come by itself, as far as known; what is at work may."""
    return item["severity"] < AT_WORK or keeps_from_running(item["reason"])


def _problem(form: Form) -> str:
    """What is wrong with a placement itself; that its removal is held is told as a hold."""
    messages = [hold.get("message") for hold in form["held"] if hold["reason"] == REMOVAL_HELD]
    problem = str(form["problem"])
    return "" if problem.partition("; ")[0] in messages else problem


def _ledger(controllers: Controllers) -> LedgerFacts:
    held = held_inventory(controllers)
    return LedgerFacts(
        lost_spaces=lost_spaces(controllers),
        lost=lost_records(controllers),
        held=held,
        wrong={
            about: why
            for about, why in sorted(controllers.mailboxes.registry.errors.items())
            if not about.endswith(HELD_END)
        },
        unplaced=dict(sorted(controllers.mailboxes.unplaced.items())),
    )


def _is_unplaced(form: Form, answer: Form) -> bool:
    """Whether a node is an edge for which no SyncTarget is in force."""
    is_edge = form["is_edge"] or answer.get("role") == "edge"
    return bool(is_edge and not form["sync_target"])
