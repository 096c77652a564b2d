"""What an assistant is answered: asked of the tree as commands ask it, redacted and bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import asdict
from typing import Any

from leafcast.ask.asked_space import key_form
from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ask.object_readers import objects_at
from leafcast.ask.resource_names import ResourceKind, ResourceKinds, UnknownKind
from leafcast.ask.session import Session
from leafcast.ask.trace import asked_trace
from leafcast.ask.upsynced import CopiesWanted
from leafcast.ask.why import asked_why
from leafcast.assistants.bounds import bounded
from leafcast.changes.asked_batches import judged
from leafcast.changes.forms import ApplyBatch
from leafcast.changes.wishes import PlannedWrite
from leafcast.manifest_sources import BadManifests
from leafcast.show.object_output import diff_lines
from leafcast.support.known_secrets import secrets_here, secrets_of_objects
from leafcast.support.redaction import Redaction
from leafcast.ui.facts import PageFacts
from leafcast.ui.kept_session import KeptSession
from relay.objects.merge import wish_of
from relay.ports import Clock
from relay.space_errors import SpaceError
from schemas.objects.manifest_files import LoadedObject, read_objects
from schemas.objects.objects import DEFAULT_NAMESPACE
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

MANIFESTS_CHARACTERS_MAX = 1_000_000
SECRETS_SECONDS = 60.0
"""So long what the centre's Secrets hold counts as known."""
_CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")


class NotAnswered(Exception):
    """Why there is no answer, and what to do; no secret is in it."""


class TreeAnswers:
    """Of one tree. Each answer is text; each raises NotAnswered."""

    def __init__(self, kept: KeptSession, facts: PageFacts, clock: Clock) -> None:
        self._kept, self._facts, self._clock = kept, facts, clock
        self._redaction, self._read_at = Redaction(), float("-inf")

    async def status(self, placement: str) -> str:
        """One placement, or all."""
        facts = self._facts
        return await self._told(facts.placement(placement) if placement else facts.placements())

    async def plan(self, manifests: str) -> str:
        """What applying would do everywhere."""
        return await self._told(self._plan(manifests))

    async def diff(self, manifests: str) -> str:
        """What applying would change at the centre."""
        return await self._told(self._diff(manifests))

    async def why(self, at: str, placement: str, resource: str, name: str, namespace: str) -> str:
        """Why a placement or an object is not at a destination as it is meant."""
        return await self._told(self._why(at, placement, resource, name, namespace))

    async def trace(self, placement: str, at: str, generation: int) -> str:
        """Where the time of a change of a placement went, on one way down the tree."""
        return await self._told(self._trace(placement, at, generation))

    async def doctor(self) -> str:
        """What the doctor finds, the worst first."""
        return await self._told(self._doctor())

    async def get(self, at: str, resource: str, name: str, namespace: str) -> str:
        """What an edge has."""
        return await self._told(self._get(at, resource, name, namespace))

    async def _told(self, asked: Awaitable[Any]) -> str:
        redaction = self._redaction
        try:
            # Before all else: nothing is told while it is not known what is secret.
            form = await self._asked(asked)
            redaction = await self._knowing()
        except (CallFailed, NotRunning, SpaceError, UnknownKind, BadIdentity) as error:
            raise NotAnswered(redaction.text(str(error))) from None
        except BadManifests as error:
            raise NotAnswered(redaction.text("\n".join(error.faults))) from None
        return bounded(redaction.form(form))

    async def _asked(self, asked: Awaitable[Any]) -> Any:
        return await asked

    async def _knowing(self) -> Redaction:
        """Hides what this machine and the centre's Secrets hold; raises as a session does."""
        now = self._clock.now().seconds
        if now - self._read_at > SECRETS_SECONDS:
            async with self._kept.session() as session:
                listed = await session.workloads.list("", "secrets")
                here = secrets_here(session.data_dir)
            self._redaction = Redaction([*here, *secrets_of_objects(listed.objects)])
            self._read_at = now
        return self._redaction

    async def _plan(self, manifests: str) -> Any:
        _read(manifests)
        form = await self._facts.plan(manifests)
        objects = [{"object": name, "verb": verb} for name, verb in form["objects"].items()]
        return {**form, "objects": objects}

    async def _diff(self, manifests: str) -> Any:
        loaded = _read(manifests)
        redaction = await self._knowing()
        async with self._kept.session() as session, judged(session, ApplyBatch(loaded)) as batch:
            changed = [write for write in batch.writes if write.verb != "unchanged"]
            # Not by its name, which may hold the word secret.
            named = [(str(it.wish.key), [*_difference(it, redaction)]) for it in changed]
        return {"changes": [{"object": name, "lines": lines} for name, lines in named]}

    async def _why(self, at: str, placement: str, resource: str, name: str, namespace: str) -> Any:
        path = str(NodePath.parse(at))
        if not placement and not (resource and name):
            remedy = "name a placement, or a resource and the name of an object"
            raise CallFailed("why", "Invalid", "nothing is asked about", remedy)
        async with self._kept.session() as session:
            if placement:
                return await asked_why(session, path, placement=placement)
            kind = await _kind(session, resource)
            place = (namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""
            return await asked_why(session, path, object=key_form(kind.key(place, name)))

    async def _trace(self, placement: str, at: str, generation: int) -> Any:
        path = str(NodePath.parse(at)) if at else ""
        async with self._kept.session() as session:
            return await asked_trace(session, placement, generation, path)

    async def _doctor(self) -> Any:
        ranks = ("failure", "warning", "ok")
        found = sorted(await self._facts.doctor(), key=lambda check: ranks.index(check.state))
        return {"checks": [asdict(check) for check in found]}

    async def _get(self, at: str, resource: str, name: str, namespace: str) -> Any:
        path = str(NodePath.parse(at))
        async with self._kept.session() as session:
            kind = await _kind(session, resource)
            place = (namespace or DEFAULT_NAMESPACE) if kind.namespaced and name else namespace
            wanted = CopiesWanted(kind.group, kind.resource, place, name)
            return {"objects": list(await objects_at(session, path, wanted))}


async def _kind(session: Session, resource: str) -> ResourceKind:
    """What a word such as deploy means; raises UnknownKind."""
    definitions = await session.workloads.list(*_CRDS)
    return ResourceKinds(definitions.objects).resolve(resource, guess=True)


def _read(manifests: str) -> list[LoadedObject]:
    if len(manifests) > MANIFESTS_CHARACTERS_MAX:
        remedy = "give fewer at a time"
        said = f"more than {MANIFESTS_CHARACTERS_MAX} characters"
        raise CallFailed("plan", "TooLarge", said, remedy)
    loaded, problems = read_objects(manifests, "manifests")
    if problems or not loaded:
        raise BadManifests([*map(str, problems)] or ["manifests: there is no object in them"])
    return list(loaded)


def _difference(write: PlannedWrite, redaction: Redaction) -> Iterator[str]:
    """What changes of an object. Both sides are redacted first, as lines have no fields."""
    before, after = (
        redaction.form({} if it is None else {"kind": write.after["kind"], **wish_of(it)})
        for it in (write.before, write.after)
    )
    lines = diff_lines(before, after, write.wish.key.name, "MERGED")
    yield from lines or [f"{write.verb}, in what is hidden only"]
