"""The names of wheels, and for which machine and which Python each one is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.releases.release_manifest import PLATFORMS
from schemas.releases.release_refused import ReleaseRefused

_FORM = re.compile(
    r"([A-Za-z0-9_.]+)-([A-Za-z0-9_.+!]+)(?:-\d[A-Za-z0-9_.]*)?"
    r"-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)\.whl"
)
_MACHINES = dict(zip(("x86_64", "aarch64"), PLATFORMS, strict=True))
_CPYTHON = re.compile(r"cp3(\d+)")


@dataclass(frozen=True, slots=True)
class WheelName:
    """What the name of a wheel says."""

    distribution: str
    version: str
    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    systems: tuple[str, ...]

    @classmethod
    def parse(cls, name: str) -> WheelName:
        """Read it; raises ReleaseRefused."""
        found = _FORM.fullmatch(name)
        if found is None:
            raise ReleaseRefused("wheels", f"{name!r} is no name of a wheel", "name it as built")
        distribution, version, *tags = found.groups()
        pythons, abis, systems = (tuple(tag.split(".")) for tag in tags)
        plain = re.sub(r"[-_.]+", "_", distribution).lower()
        return cls(plain, version, pythons, abis, systems)

    @property
    def platforms(self) -> frozenset[str]:
        """Those of ours that it is for; none for another system's."""
        if "any" in self.systems:
            return frozenset(PLATFORMS)
        linux = [it for it in self.systems if it.startswith(("linux_", "manylinux"))]
        return frozenset(
            platform
            for machine, platform in _MACHINES.items()
            if any(it.endswith(f"_{machine}") for it in linux)
        )

    def runs_on(self, minor: int) -> bool:
        """Whether CPython 3.`minor` takes it."""
        if "py3" in self.pythons or f"py3{minor}" in self.pythons:
            return "none" in self.abis
        found = [int(it[1]) for tag in self.pythons if (it := _CPYTHON.fullmatch(tag))]
        if "abi3" in self.abis:
            return any(it <= minor for it in found)
        return minor in found


def platform_of(system: str, machine: str) -> str:
    """This machine's platform, as releases name it, by what it says of itself."""
    named = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    return f"{system.lower()}-{named}"
