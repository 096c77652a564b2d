"""The LeafcastReleases of a workload description space, and which of them goes out."""

from __future__ import annotations

from collections.abc import Mapping

from controllers.core.workloads.read_objects import ReadObjects
from schemas.api.leafcast_release import LeafcastRelease
from schemas.api.parsing import parse_wish
from schemas.objects.objects import Object
from schemas.releases.release_manifest import read_manifest
from schemas.releases.release_refused import ReleaseRefused
from schemas.values.faults import Fault, InvalidObject

ENDED = frozenset({"Complete", "Aborted"})


class LeafcastReleases(ReadObjects[LeafcastRelease, str]):
    """What releases there are; a change of one touches no placement."""

    def phase(self, name: str) -> str:
        """How far one is, as its status says."""
        status = self.objects[name].get("status")
        return str(status.get("phase", "")) if isinstance(status, Mapping) else ""

    def going_out(self, version: str) -> str | None:
        """The one that goes out now, or went out last; `version` is that in force, "" if none is.

        One that is under way goes on to its end. Then the newest that has not ended is next.
        """
        current = min(
            (n for n, it in self.values.items() if it.spec.version == version), default=""
        )
        if current and not self.values[current].spec.aborted and self.phase(current) not in ENDED:
            return current
        waiting = [
            name
            for name, it in self.values.items()
            if it.spec.version != version and self._may_begin(name, it)
        ]
        return max(waiting, key=self._age, default=current or None)

    def _may_begin(self, name: str, release: LeafcastRelease) -> bool:
        return not release.spec.aborted and self.phase(name) not in ENDED

    def _age(self, name: str) -> tuple[str, str]:
        return str(self.objects[name]["metadata"].get("creationTimestamp", "")), name

    def _read(self, name: str, obj: Object) -> LeafcastRelease:
        parsed = parse_wish(obj)
        assert isinstance(parsed, LeafcastRelease)
        if faults := manifest_faults(parsed):
            raise InvalidObject("LeafcastRelease", name, faults)
        return parsed

    def _touched(
        self, _name: str, _before: LeafcastRelease | None, _after: LeafcastRelease | None
    ) -> frozenset[str]:
        return frozenset()


def manifest_faults(release: LeafcastRelease) -> list[Fault]:
    """What is wrong with the manifest that one brings; who signed it launchers look at."""
    spec = release.spec
    try:
        manifest = read_manifest(spec.manifest.encode())
    except ReleaseRefused as refused:
        return [Fault("spec.manifest", str(refused), "write what the publisher's file holds")]
    if manifest.version != spec.version:
        said = f"it is of {manifest.version}, and spec.version is {spec.version}"
        return [Fault("spec.manifest", said, "take the manifest of that version")]
    return []
