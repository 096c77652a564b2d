"""What people ask of a rollout: each request is judged once, and done whole or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from controllers.core.rollout import layers, recovery, revisions, waves
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.rejection import accepting, rejecting
from controllers.core.rollout.revisions import aborted, at_once, begun, finished, has_room
from controllers.core.rollout.state import (
    ChangeCause,
    changed,
    is_under_way,
    paced,
    present,
    reference,
    with_wave,
)
from schemas.api.rollout_request import RolloutRequest, read_rollout_request
from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import Freeze, Pin, RequestStatus, Revision, RolloutStatus
from schemas.content.blobs import Reference
from schemas.values.faults import Faulty
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

_MARK_CHARACTERS = 64
USER = "leafcast rollout"

RequestVerdict = Literal["Done", "Refused", "Ignored"]


class RolloutRequestRefused(Exception):
    """A request that is not done; says why, and what to do."""


def handle(
    spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus, now_ms: int
) -> RolloutStatus:
    """The state after the request that the annotation says, unless it was handled before."""
    text = facts.request
    if not text:
        return state
    known = state.request.id if state.request is not None else ""
    try:
        request = read_rollout_request(text)
    except Faulty as refused:
        mark = text[:_MARK_CHARACTERS]
        told = RequestStatus(id=mark, outcome="Refused", message=str(refused))
        return state if known == mark else changed(state, request=told)
    if request.id == known:
        return state
    try:
        done, message = _Asked(spec, facts, state, request, now_ms).answer()
    except RolloutRequestRefused as refused:
        return changed(state, request=answered(text, "Refused", str(refused)))
    return changed(done, request=answered(text, "Done", message))


def is_news(state: RolloutStatus, text: str) -> bool:
    """Whether the annotation holds a request that was not handled yet."""
    known = state.request.id if state.request is not None else ""
    try:
        return bool(text) and read_rollout_request(text).id != known
    except Faulty:
        return False


def ignored(state: RolloutStatus, text: str) -> RolloutStatus:
    """The state that takes a request for one that was handled: it was made of a state now lost."""
    if not text:
        return state
    said = answered(text, "Ignored", "it was made before this status began")
    return changed(state, request=said)


def answered(text: str, outcome: RequestVerdict, message: str) -> RequestStatus:
    """What became of the request that the annotation says."""
    try:
        request = read_rollout_request(text)
    except Faulty:
        return RequestStatus(id=text[:_MARK_CHARACTERS], outcome=outcome, message=message)
    return RequestStatus(id=request.id, action=request.action, outcome=outcome, message=message)


_Answer = tuple[RolloutStatus, str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request of one state."""

    spec: RolloutSpec
    facts: RolloutFacts
    state: RolloutStatus
    request: RolloutRequest
    now_ms: int

    def answer(self) -> _Answer:
        """The state in which it is done, and what follows; raises Refused."""
        actions: Mapping[str, Callable[[], _Answer]] = {
            "pause": self._pause,
            "resume": self._resume,
            "promote": self._promote,
            "approve": self._approve,
            "abort": self._abort,
            "undo": self._undo,
            "retry": self._retry,
            "pin": self._pin,
            "unpin": self._unpin,
            "freeze": self._freeze,
            "unfreeze": self._unfreeze,
        }
        return actions[self.request.action]()

    # What is under way.

    def _pause(self) -> _Answer:
        self._demand_under_way()
        _demand(not self.state.paused, "it is paused already; let it go on with resume")
        return changed(self.state, paused=True, phase="Paused"), "nothing more opens"

    def _resume(self) -> _Answer:
        state = self.state
        if state.phase == "Held":
            _demand(self.facts.target is not None, "the placement is not there; create it first")
            done = recovery.resumed_from_nothing(state, self.facts, self.now_ms)
            return done, "everyone gets what the space holds now"
        self._demand_under_way()
        wave = present(state)
        failed = wave is not None and wave.phase == "Failed"
        _demand(state.paused or failed, "it is not paused")
        if wave is not None and failed:
            again = "Progressing" if wave.step else "Pending"
            lasted = paced(wave)
            state = with_wave(state, changed(wave, phase=again, reason="", lasted=lasted, soaked=0))
        return changed(state, paused=False, phase="Progressing"), "it goes on"

    def _promote(self) -> _Answer:
        if self.request.all and self.state.phase == "Partial":
            return at_once(self.state), "everyone gets it, also whom its waves left out"
        self._demand_under_way()
        state = changed(self.state, paused=False, phase="Progressing")
        wave = present(state)
        assert wave is not None
        if self.request.all:
            for at in range(state.wave - 1, len(state.waves)):
                state = self._opened_whole(changed(state, wave=at + 1))
            state = changed(state, wave_name=state.waves[-1].name)
            return finished(state), "all waves are open"
        if wave.phase == "AwaitingApproval":
            return self._approve()
        return self._opened_whole(state), f'wave "{wave.name}" is passed'

    def _opened_whole(self, state: RolloutStatus) -> RolloutStatus:
        """The present wave opened to its end, and not waited for."""
        wave = present(state)
        assert wave is not None
        listed = [each.definition for each in state.waves]
        steps = wave.steps or waves.steps_of(listed, state.wave - 1, self.facts.members)
        wave = changed(wave, steps=steps, step=len(steps), phase="Promoted", reason="")
        state = with_wave(state, wave)
        gate = waves.gate_of(self.spec, state.waves, state.wave - 1, state.revision, state.salt)
        return changed(state, layers=layers.opened(state.layers, gate))

    def _approve(self) -> _Answer:
        self._demand_under_way()
        wave = present(self.state)
        named = self.request.wave or (wave.name if wave else "")
        if wave is None or wave.name != named or wave.phase != "AwaitingApproval":
            known = [each.name for each in self.state.waves]
            _demand(named in known, f'no wave "{named}"; there are {", ".join(known)}')
            raise RolloutRequestRefused(f'wave "{named}" does not wait for approval now')
        field = "approved_after" if wave.step else "approved_before"
        state = with_wave(self.state, changed(wave, **{field: True}, phase="Progressing"))
        # That someone approves is no reason to go on with what is paused.
        phase = "Paused" if state.paused else "Progressing"
        return changed(state, phase=phase), f'wave "{named}" is approved'

    def _abort(self) -> _Answer:
        self._demand_under_way()
        keep = self.request.keep
        unknown = "what they had before is not known any more; undo to a kept revision"
        _demand(keep or len(self.state.layers) > 1, unknown)
        said = "each destination that has it keeps it" if keep else "all go back to what they had"
        return aborted(self.state, self.now_ms, keep=keep), said

    def _demand_under_way(self) -> None:
        state = self.state
        if not is_under_way(state):
            last = f"revision {state.revision} is {state.phase.lower()}" if state.revision else ""
            # Its waves leave some out, whom only this lets have it.
            more = "; promote --all gives it to everyone" if state.phase == "Partial" else ""
            raise RolloutRequestRefused(f"nothing goes out now{': ' if last else ''}{last}{more}")

    # Former contents.

    def _undo(self) -> _Answer:
        state = self.state
        number = self.request.revision
        found = revisions.revision(state, number) if number else revisions.former(state)
        arm = self._arm(found, number)
        assert found is not None
        is_out = bool(state.layers) and state.layers[0].manifest == arm.address
        _demand(not is_out, "that content is what goes out already")
        change = ChangeCause(self.request.user or USER, f"undo to revision {found.number}")
        facts = replace(self.facts, change=change)
        crowded = f"{layers.CONTENTS_MAX} contents are out at once; abort, or undo with now"
        _demand(self.request.now or has_room(state, arm), crowded)
        done = begun(self.spec, facts, changed(state, paused=False), arm, self.now_ms)
        done = rejecting(done, arm, state.revision, self.now_ms, undone=True)
        if self.request.now:
            return at_once(done), f"revision {done.revision} goes to everyone now"
        return done, f"revision {done.revision} goes out by waves"

    def _retry(self) -> _Answer:
        _demand(self.state.wish, "nothing is rejected: what the space wants goes out as it is")
        return accepting(self.state), "what was aborted or undone goes out by waves again"

    def _arm(self, found: Revision | None, number: int) -> Reference:
        """The content of a revision that is kept."""
        kept = ", ".join(str(item.number) for item in self.state.history if item.manifest)
        if found is None or not found.manifest:
            what = f"revision {number} is not kept"
            if not number:
                what = "no other revision went through its waves before it; name one with --to"
            raise RolloutRequestRefused(f"{what}; kept are {kept or 'none'}")
        arm = reference(found.manifest, found.size)
        lost = f"the content of revision {found.number} is lost; kept are {kept}"
        _demand(not self.facts.lacks(arm), lost)
        return arm

    # Places.

    def _pin(self) -> _Answer:
        path, number = self._place(), self.request.revision
        self._arm(revisions.revision(self.state, number), number)
        others = tuple(pin for pin in self.state.pins if pin.path != path)
        most = f"{layers.PINS_MAX} pins at most; unpin another place first"
        _demand(len(others) < layers.PINS_MAX, most)
        pins = (*others, Pin(path=path, revision=number))
        return changed(self.state, pins=pins), f"{path} keeps revision {number}"

    def _unpin(self) -> _Answer:
        path = self.request.path
        left = tuple(pin for pin in self.state.pins if pin.path != path)
        _demand(left != self.state.pins, f"nothing is pinned at {path}")
        return changed(self.state, pins=left), f"{path} follows the rollout again"

    def _freeze(self) -> _Answer:
        state, path = self.state, self._place()
        _demand(path not in {it.path for it in state.freezes}, f"{path} is frozen already")
        most = f"{layers.FREEZES_MAX} freezes at most; unfreeze another place first"
        _demand(len(state.freezes) < layers.FREEZES_MAX, most)
        _demand(state.layers, "nothing is out yet")
        around = layers.freeze_around(state.freezes, NodePath.parse(path))
        open_now = around or tuple(layer for layer in state.layers if layer.gates)
        freezes = (*state.freezes, Freeze(path=path, layers=open_now))
        return changed(state, freezes=freezes), f"nothing new comes to {path}"

    def _unfreeze(self) -> _Answer:
        path = self.request.path
        left = tuple(freeze for freeze in self.state.freezes if freeze.path != path)
        _demand(left != self.state.freezes, f"{path} is not frozen")
        return changed(self.state, freezes=left), f"{path} follows the rollout again"

    def _place(self) -> str:
        path = self.request.path
        try:
            NodePath.parse(path)
        except BadIdentity as error:
            raise RolloutRequestRefused(str(error)) from error
        _demand(self.facts.is_place(path), f"no node or destination is at or below {path}")
        return path


def _demand(holds: object, otherwise: str) -> None:
    """Raises RolloutRequestRefused unless it holds."""
    if not holds:
        raise RolloutRequestRefused(otherwise)
