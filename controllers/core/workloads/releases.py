"""The LeafcastReleases of a workload description space, and which of them goes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controllers.core.rollout.centre_order import CentreOrder, centre_order, why_no_order
from controllers.core.workloads.read_objects import ReadObjects
from schemas.api.leafcast_release import LeafcastRelease
from schemas.api.parsing import parse_wish
from schemas.objects.objects import Object
from schemas.records.signing import OWN_WIRES
from schemas.releases.release_manifest import CENTRE_LAST, ReleaseManifest, read_manifest
from schemas.releases.release_phases import accepted_manifests, has_ended, takes_back
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import version_order
from schemas.releases.release_wires import Wires
from schemas.values.faults import Fault, InvalidObject
from schemas.values.identity import NodePath

WhyNotBack = Callable[[bytes, Mapping[str, bytes]], str]
"""Why a manifest may not go out once more, where nodes run releases with those, by version."""


class LeafcastReleases(ReadObjects[LeafcastRelease, str]):
    """What releases there are; a change of one touches no placement."""

    def __init__(self, wires: Wires = OWN_WIRES) -> None:
        """`wires` is what the centre speaks."""
        super().__init__()
        self._wires = wires
        # Whether all that there are were seen in this run.
        self.is_listed = False
        # Why they may not begin, by name, as the centre's owner does not believe who signed them.
        self.unsigned: Mapping[str, str] = {}
        # The manifest of each, as it was read last, and all pieces that were named in this run.
        self._manifests: dict[str, ReleaseManifest] = {}
        self._named: frozenset[str] = frozenset()

    @property
    def known_pieces(self) -> frozenset[str]:
        """The pieces that are to go once no release names them: those that some did."""
        return self._named

    def remember_pieces(self, pieces: frozenset[str]) -> None:
        """Take it that releases named these before this run."""
        self._named |= pieces

    def unnamed_pieces(self, kept: frozenset[str] = frozenset()) -> frozenset[str]:
        """The pieces that some release named since this was asked last, and none does now.

        Those that are `kept` come later; none does while it is not known what a release names.
        """
        self._manifests = {name: it for name, it in self._manifests.items() if name in self.objects}
        if self._manifests.keys() != self.objects.keys():
            return frozenset()
        pieces = [it.all_pieces for it in self._manifests.values()]
        named = frozenset[str]().union(*pieces) | (self._named & kept)
        lost, self._named = self._named - named, named
        return lost

    def going_out(self, version: str) -> str | None:
        """The one that goes out now, or went out last; `version` is that in force, "" if none is.

        One that is under way goes on to its end. Then the newest that has not ended is next, unless
        that would take nodes back: only a person's word does, and goes before.
        """
        current = min(
            (n for n, it in self.values.items() if it.spec.version == version), default=""
        )
        if current and self._goes_on(current):
            return current
        waiting = [
            name
            for name, it in self.values.items()
            if it.spec.version != version and self._may_begin(name)
        ]
        return max(waiting, key=self._order, default=current or None)

    def passed_by(self, name: str) -> str:
        """The newest release that went out and that this one would take nodes back from; or ""."""
        own = self.values[name].spec.version
        newer = [
            other.spec.version
            for each, other in self.values.items()
            if takes_back(own, other.spec.version, self._status(each))
        ]
        return max(newer, key=version_order, default="")

    def former(self, name: str, why_not: WhyNotBack = lambda _manifest, _accepted: "") -> str:
        """The newest older release that is complete, to which the tree can go back; or "".

        It went out wherever this one does, the wire allows it, and `why_not` says nothing against
        it: nodes that tried this one believe whom it names.
        """
        own = self.values[name].spec
        accepted = accepted_manifests(self.objects[each] for each in self.values)
        accepted[own.version] = own.manifest.encode()
        older = {
            it.spec.version: each
            for each, it in self.values.items()
            if self._status(each).get("phase") == "Complete"
            and version_order(it.spec.version) < version_order(own.version)
            and NodePath.parse(it.spec.path).holds(NodePath.parse(own.path))
        }
        for version in sorted(older, key=version_order, reverse=True):
            spec = self.values[older[version]].spec
            if self.why_no_order(self._manifests[older[version]], spec.path):
                continue
            if not why_not(spec.manifest.encode(), accepted):
                return version
        return ""

    def has_failed(self, name: str) -> bool:
        """Whether nothing more begins of it before a person says so."""
        return self._status(name).get("phase") == "Failed"

    def tried(self, name: str) -> int:
        """The attempt that its status speaks of; 0 if it never went out."""
        said = self._status(name).get("attempt", 0)
        return said if isinstance(said, int) else 0

    def is_asked(self, name: str) -> bool:
        """Whether a person asked for it, and it did not begin since."""
        return self.values[name].spec.attempt > self.tried(name)

    def has_ended(self, name: str) -> bool:
        """Whether it goes out no further, and nobody asked for it since."""
        return has_ended(self._status(name)) and not self.is_asked(name)

    def manifest(self, name: str) -> ReleaseManifest:
        """What its publisher says of it."""
        return self._manifests[name]

    def order(self, release: ReleaseManifest) -> CentreOrder:
        """Whether the centre may take a release before its nodes, or after them."""
        return centre_order(self._wires, release.wires)

    def why_no_order(self, release: ReleaseManifest, path: str, runs: str = "") -> str:
        """Why neither the centre nor nodes at and below a path can take it first; "" if one can.

        `runs` is the centre's version, "" if that is not known.
        """
        others = [it for name, it in self._manifests.items() if name in self.values]
        if why := why_no_order(self._wires, runs, release, others):
            return why
        stays = self.order(release).why_not.get(CENTRE_LAST, "")
        if NodePath.parse(path).is_root or not stays:
            return ""
        return f"it is for {path} alone, and {stays}; let it out for the whole tree: --path /"

    def _goes_on(self, name: str) -> bool:
        return not self.values[name].spec.aborted and not self.has_ended(name)

    def _may_begin(self, name: str) -> bool:
        if not self._goes_on(name) or name in self.unsigned:
            return False
        if self.why_no_order(self._manifests[name], self.values[name].spec.path):
            return False
        return self.is_asked(name) or not self.passed_by(name)

    def _order(self, name: str) -> tuple[bool | str | int, ...]:
        created = str(self.objects[name]["metadata"].get("creationTimestamp", ""))
        version = version_order(self.values[name].spec.version)
        return self.is_asked(name), created, *version, name

    def _status(self, name: str) -> Mapping[str, Any]:
        status = self.objects[name].get("status")
        return status if isinstance(status, Mapping) else {}

    def _read(self, name: str, obj: Object) -> LeafcastRelease:
        parsed = parse_wish(obj)
        assert isinstance(parsed, LeafcastRelease)
        if faults := manifest_faults(parsed):
            raise InvalidObject("LeafcastRelease", name, faults)
        manifest = read_manifest(parsed.spec.manifest.encode())
        self._manifests[name] = manifest
        self._named |= manifest.all_pieces.keys()
        return parsed

    def _touched(
        self, _name: str, _before: LeafcastRelease | None, _after: LeafcastRelease | None
    ) -> frozenset[str]:
        return frozenset()


def manifest_faults(release: LeafcastRelease) -> list[Fault]:
    """What is wrong with the manifest that one brings, whoever signed it."""
    spec = release.spec
    try:
        manifest = read_manifest(spec.manifest.encode())
    except ReleaseRefused as refused:
        return [Fault("spec.manifest", str(refused), "write what the publisher's file holds")]
    if manifest.version != spec.version:
        said = f"it is of {manifest.version}, and spec.version is {spec.version}"
        return [Fault("spec.manifest", said, "take the manifest of that version")]
    return []
