"""LeafcastReleases steer which release of Leafcast the tree wants: one record in the ledger."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from controllers.core.ledger.ledger import Draft
from controllers.core.rollout.centre_turn import CentreTurn, step_of_tree
from controllers.core.rollout.release_failed import with_way_back
from controllers.core.rollout.release_holders import with_holders
from controllers.core.rollout.release_opening import ReleaseMembers
from controllers.core.rollout.release_steps import (
    ABORTED,
    ReleaseStep,
    needed_wire,
    release_members,
    release_waves,
    wave_statuses,
)
from controllers.core.workloads.releases import WhyNotBack
from controllers.spaces.status_writing import put_status
from controllers.work_queue import ALL, WorkQueue
from controllers.workloads.placement_translator import PlacementTranslator
from controllers.workloads.queue_reconciler import QueueReconciler
from controllers.workloads.release_content import (
    PiecesLacking,
    ReleaseContent,
    kept_content,
)
from relay.release_pieces import note_pieces, noted_pieces, remove_pieces
from schemas.api.leafcast_release import (
    LeafcastReleaseSpec,
    LeafcastReleaseStatus,
    ReleasePhase,
    RunningVersion,
)
from schemas.objects.objects import Object, ObjectKey
from schemas.objects.source_objects import generation_of
from schemas.records.records import (
    API_RELEASE,
    NodeRecord,
    Profile,
    Record,
    ReleaseRecord,
    Source,
)
from schemas.records.release_body import ReleaseBody, ReleaseWave
from schemas.records.signing import WIRE_VERSION
from schemas.releases.release_manifest import ReleaseManifest, digest_of, read_manifest
from schemas.reports.running import Running
from schemas.values.groups import RELEASES

AGAIN_SECONDS = 5.0
"""So often it is looked whether pieces came that are lacking."""
LOOK_AGAIN_SECONDS = 0.1
PIN_SECONDS = 60.0
"""So often it is looked whether the owner of the centre changed whom it believes."""
SILENT_SECONDS = 30.0
"""So often it is looked whether those are there for whom a wave waits."""
VERSIONS_MAX = 10


class ReleaseController(QueueReconciler[str]):
    """The LeafcastReleases of the first workload description space."""

    def __init__(self, translator: PlacementTranslator, queue: WorkQueue[str]) -> None:
        super().__init__(translator, queue)
        self._issuer = translator.issuer
        # Where the pieces lie.
        self.folder: Path | None = None
        # Why the centre's owner does not believe who signed a manifest; "" if nobody is named.
        self.why_not_signed: Callable[[bytes], str] = lambda _manifest: ""
        # Why one that was let out may not go out again; "" if it may.
        self.why_not_back: WhyNotBack = lambda _manifest, _accepted: ""
        self._source = Source(API_RELEASE, self._issuer.tree, "", "release")
        self.key = self._source.key
        self._loaded: ReleaseContent | None = None
        # Whom the waves admit, as it was looked up last.
        self._members: tuple[tuple[ReleaseWave, ...], list[ReleaseMembers]] | None = None
        # The pieces that are noted in the folder; None before it was read.
        self._noted: frozenset[str] | None = None
        # The version that this run saw going out last.
        self._steered = ""
        self._issuer.listen(self._ledger_changed)

    async def reconcile(self, keys: frozenset[str]) -> Collection[str]:
        """Have the ledger and the statuses say what follows now; those to be tried again."""
        listed, record = self._translator.workloads.releases, self._in_force()
        listed.unsigned = self._unsigned(record)
        name = listed.going_out(record.release.version if record is not None else "")
        is_written = True
        if name is not None:
            is_written = await self._steer(name, record)
        elif record is not None and self._is_gone(record.release.version):
            # It was seen here, and is gone. Nodes go on with what they run.
            await self._issuer.delete([self.key])
        for other in [each for each in listed.objects if each != name]:
            is_written = await self._say_of_other(other, name) and is_written
        if self.folder is not None:
            await self._let_go(self.folder)
        return () if is_written else keys

    def _is_gone(self, version: str) -> bool:
        """Whether this run saw a release go out that no object names any more."""
        forms = [it.get("spec") for it in self._objects.values()]
        named = {it.get("version") for it in forms if isinstance(it, Mapping)}
        return self._steered == version and version not in named

    def _unsigned(self, record: ReleaseRecord | None) -> dict[str, str]:
        """Why releases may not begin that nobody signed whom this centre believes, by name.

        What is in force is judged no more: nodes have it, and judge it themselves.
        """
        listed, found = self._translator.workloads.releases, dict[str, str]()
        version, in_force = "", ""
        if record is not None:
            version, in_force = record.release.version, record.release.manifest
        for name, value in listed.values.items():
            spec, manifest = value.spec, value.spec.manifest.encode()
            is_over = spec.aborted or (listed.has_ended(name) and spec.version != version)
            if is_over or digest_of(manifest) == in_force:
                continue
            if why := self.why_not_signed(manifest):
                found[name] = f"spec.manifest: {why}"
                self._queue.add_later(name, PIN_SECONDS)
        return found

    async def _let_go(self, folder: Path) -> None:
        """Remove the pieces that no release names any more, nor the record in force."""
        listed, record = self._translator.workloads.releases, self._in_force()
        if not listed.is_listed:
            return
        if self._noted is None:
            self._noted = await asyncio.to_thread(noted_pieces, folder)
            listed.remember_pieces(self._noted)
        pieces = record.release.pieces if record is not None else ()
        if lost := listed.unnamed_pieces(frozenset(it.sha256 for it in pieces)):
            await asyncio.to_thread(remove_pieces, folder, lost)
        known = listed.known_pieces
        if known != self._noted and await asyncio.to_thread(note_pieces, folder, known):
            self._noted = known

    async def _steer(self, name: str, record: ReleaseRecord | None) -> bool:
        """Go on with one release; whether all was written."""
        listed = self._translator.workloads.releases
        spec, now = listed.values[name].spec, self._clock.now()
        self._steered = spec.version
        if why := listed.unsigned.get(name):
            # Its manifest is another than that in force, which stays as it is.
            return await self._say(name, "Refused", why)
        manifest = digest_of(spec.manifest.encode())
        if record is not None and record.release.manifest != manifest:
            record = None
        # What was good when it went out before says nothing of this time.
        since = self._good_since(name) if record is not None else None
        attempt = spec.attempt
        waves = release_waves(spec)
        members = self._members_of(waves)
        before = record.release.waves if record is not None else ()
        running = self._relay.running()
        centre = self._centre_turn(name)
        step = step_of_tree(spec, members, before, running, since, now.wall_ms, centre)
        below, silent = self._relay.running_below(), self._relay.silent_below()
        told = with_holders(step, spec.version, members, running, below, silent)
        if step.phase == "Progressing":
            # Who is silent says nothing that would have it looked at.
            self._queue.add_later(name, SILENT_SECONDS)
        step = replace(step, message=told)
        if step.phase == "Failed":
            former = listed.former(name, self.why_not_back)
            step = replace(step, message=with_way_back(step, spec.version, former))
        try:
            await self._issue(spec, step, record)
        except (PiecesLacking, OSError) as lacking:
            self._queue.add_later(name, AGAIN_SECONDS)
            step = ReleaseStep((), "Waiting", str(lacking))
            attempt = listed.tried(name)
        if step.due_seconds is not None:
            self._queue.add_later(name, max(step.due_seconds, LOOK_AGAIN_SECONDS))
        return await self._write(name, self._status(name, attempt, step, members, running))

    def standings(self) -> list[tuple[str, str, str]]:
        """The version, the phase and the message of each, as its status says them."""
        found = []
        for obj in self._objects.values():
            spec, status = obj.get("spec"), obj.get("status")
            if isinstance(spec, Mapping) and isinstance(status, Mapping):
                said = spec.get("version", ""), status.get("phase", ""), status.get("message", "")
                found.append((str(said[0]), str(said[1]), str(said[2])))
        return sorted(found)

    def planned(self, version: str, manifest: str, path: str) -> dict[str, str]:
        """`{goes, why, refused}`: when the centre takes a release, and why it does not go out.

        Without a manifest it is the release of that version, if there is one; else nothing is said.
        Raises ReleaseRefused.
        """
        listed = self._translator.workloads.releases
        if manifest:
            release = read_manifest(manifest.encode())
        else:
            named = [n for n, it in listed.values.items() if it.spec.version == version]
            if not named:
                return {}
            release = listed.manifest(named[0])
        turn = self._turn(release, path, is_over=False)
        return {"goes": turn.goes(release.version), "why": turn.order.why, "refused": turn.why_none}

    def _centre_turn(self, name: str) -> CentreTurn:
        listed = self._translator.workloads.releases
        path, is_over = listed.values[name].spec.path, listed.has_ended(name)
        return self._turn(listed.manifest(name), path, is_over=is_over)

    def _turn(self, release: ReleaseManifest, path: str, *, is_over: bool) -> CentreTurn:
        listed, own = self._translator.workloads.releases, self._relay.running_here()
        # "" before the centre said what it runs.
        runs = next((it.version for it in own.counts), "")
        why_none = listed.why_no_order(release, path, runs)
        return CentreTurn(release.centre, listed.order(release), why_none, own, is_over)

    async def _issue(
        self, spec: LeafcastReleaseSpec, step: ReleaseStep, record: ReleaseRecord | None
    ) -> None:
        if record is not None:
            self._loaded = ReleaseContent.of(record.release)
        manifest, key = spec.manifest.encode(), self.key
        if self._loaded is None or self._loaded.manifest != digest_of(manifest):
            self._loaded = await kept_content(self._relay, key, manifest, self.folder)
        loaded = self._loaded
        body = ReleaseBody(
            loaded.content,
            spec.version,
            loaded.manifest,
            loaded.pieces,
            step.all_waves,
            spec.attempt,
            self._needed_wire(manifest, step),
        )
        if record is None or record.release != body:
            await self._issuer.issue([Draft("delta", ReleaseRecord(self._source, 0, "", "", body))])
            await self._relay.keep_history(key, ())

    def _needed_wire(self, manifest: bytes, step: ReleaseStep) -> int:
        former, is_complete = self._in_force(), step.phase == "Complete"
        lowest = read_manifest(manifest).wire_lowest if is_complete else 0
        before = former.release.needs if former is not None else 0
        return needed_wire(before, lowest, WIRE_VERSION, is_complete=is_complete)

    def _status(
        self,
        name: str,
        attempt: int,
        step: ReleaseStep,
        members: Sequence[ReleaseMembers],
        running: Running,
    ) -> LeafcastReleaseStatus:
        spec = self._translator.workloads.releases.values[name].spec
        versions = Counter[str]()
        for each in running.counts:
            versions[each.version] += each.count
        ranked = sorted(versions.items(), key=lambda item: (-item[1], item[0]))[:VERSIONS_MAX]
        faults = [it for it in running.faults if it.wanted == spec.version]
        return LeafcastReleaseStatus(
            observed_generation=self._generation(name),
            phase=step.phase,
            message=step.message,
            attempt=attempt,
            centre=step.centre_says,
            wave_name=spec.waves[len(step.waves) - 1].name if step.waves else "",
            good_since=_text_of(step.good_since_ms),
            waves=tuple(wave_statuses(spec, members, step, running)),
            versions=tuple(RunningVersion(version=it, nodes=count) for it, count in ranked),
            failures=tuple(f"{it.path}: {it.state}: {it.why}" for it in faults),
        )

    async def _say_of_other(self, name: str, going_out: str | None) -> bool:
        """Say of one that does not go out now why that is so."""
        listed = self._translator.workloads.releases
        phase: ReleasePhase = "Waiting"
        message = (
            f"{going_out} goes out first: one release goes out at a time, and this one follows"
        )
        if going_out is not None and listed.has_failed(going_out):
            version = listed.values[going_out].spec.version
            message = f"{version} failed, and holds it: leafcast upgrade abort {version}"
        if errors := listed.invalid.get(name):
            phase, message = "Refused", "; ".join(errors)
        elif listed.has_ended(name):
            return True
        elif listed.values[name].spec.aborted:
            phase, message = "Aborted", ABORTED
        elif why := listed.unsigned.get(name) or self._centre_turn(name).why_none:
            phase, message = "Refused", why
        elif (newer := listed.passed_by(name)) and not listed.is_asked(name):
            version = listed.values[name].spec.version
            message = (
                f"{newer} went out, which is newer; `leafcast upgrade start {version}` goes back"
            )
        return await self._say(name, phase, message)

    async def _say(self, name: str, phase: ReleasePhase, message: str) -> bool:
        """Write the status of one that does not go on now; whether that was done."""
        status = LeafcastReleaseStatus(
            observed_generation=self._generation(name),
            phase=phase,
            message=message,
            attempt=self._translator.workloads.releases.tried(name),
        )
        return await self._write(name, status)

    async def _write(self, name: str, status: LeafcastReleaseStatus) -> bool:
        key, obj = ObjectKey(*RELEASES, "", name), self._objects.get(name)
        form = status.model_dump(by_alias=True, exclude_none=True, mode="json")
        return await put_status(self._space, key, obj, form) is None

    @property
    def _objects(self) -> Mapping[str, Object]:
        return self._translator.workloads.releases.objects

    def _generation(self, name: str) -> int:
        return generation_of(self._objects[name])

    def _good_since(self, name: str) -> int | None:
        status = self._objects[name].get("status")
        said = status.get("goodSince") if isinstance(status, dict) else None
        try:
            return int(dt.datetime.fromisoformat(str(said)).timestamp() * 1000) if said else None
        except ValueError:
            return None

    def _in_force(self) -> ReleaseRecord | None:
        record = self._issuer.records.get(self.key)
        return record if isinstance(record, ReleaseRecord) else None

    def _members_of(self, waves: tuple[ReleaseWave, ...]) -> list[ReleaseMembers]:
        if self._members is None or self._members[0] != waves:
            self._members = waves, release_members(waves, self._issuer.records.values())
        return self._members[1]

    def _ledger_changed(self, records: Sequence[Record]) -> None:
        """Whom waves admit may be others."""
        if any(isinstance(record, Profile | NodeRecord) for record in records):
            self._members = None
            if self._translator.workloads.releases.objects:
                self._queue.add([ALL])


def _text_of(moment_ms: int | None) -> str | None:
    if moment_ms is None:
        return None
    return dt.datetime.fromtimestamp(moment_ms / 1000, dt.UTC).isoformat()
