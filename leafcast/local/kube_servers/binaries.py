"""Where the programs of a Kubernetes control plane are on this machine, and how to get them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import LoggedProcess
from relay.ports import Clock, Dice

KUBE_VERSION = "v1.36.3"
"""What `make kube` builds; the cache's folder has its name."""
ETCD, API_SERVER, KUBECTL = "etcd", "kube-apiserver", "kubectl"
CONTROLLER_MANAGER, SCHEDULER, KWOK = "kube-controller-manager", "kube-scheduler", "kwok"
ALL = (ETCD, API_SERVER, KUBECTL, CONTROLLER_MANAGER, SCHEDULER, KWOK)
ASSETS = ("LEAFCAST_KUBE_ASSETS", "KUBEBUILDER_ASSETS")
STAGES = "kwok-stages"
"""The folder beside kwok with what it makes of Nodes and Pods."""


class BinariesMissing(Exception):
    """Programs that are not on this machine; says where it looked, and how to get them."""

    def __init__(self, missing: Iterable[str]) -> None:
        self.missing = tuple(missing)
        named = [f"{name}={os.environ[name]}" for name in ASSETS if os.environ.get(name)]
        places = ", ".join([*named, str(cache_folder()), "PATH"])
        super().__init__(
            f"no {', '.join(self.missing)} on this machine (looked in {places}): `make kube` in a "
            f"checkout of Leafcast builds Kubernetes {KUBE_VERSION} with Go; or name a folder that "
            f"holds the programs, such as setup-envtest downloads: {ASSETS[0]}=/path/to/programs"
        )


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs found, by name."""

    found: Mapping[str, Path]

    def __getitem__(self, name: str) -> Path:
        """The program's path; raises BinariesMissing."""
        self.need(name)
        return self.found[name]

    def need(self, *names: str) -> None:
        """Raise BinariesMissing unless all of them were found; kwok needs its stages, too."""
        missing = [name for name in names if name not in self.found]
        if KWOK in names and KWOK in self.found and not self.stages:
            missing.append(f"{STAGES}/ beside kwok")
        if missing:
            raise BinariesMissing(missing)

    @property
    def stages(self) -> tuple[Path, ...]:
        """What tells kwok how Nodes and Pods come to life."""
        places = [cache_folder()]
        if KWOK in self.found:
            places.insert(0, self.found[KWOK].parent)
        found = (sorted((place / STAGES).glob("*.yaml")) for place in places)
        return tuple(next(filter(None, found), ()))


@dataclass(frozen=True, slots=True)
class KubeHost:
    """What the processes of a control plane are started with."""

    binaries: Binaries
    guard: ProcessGuard
    clock: Clock
    dice: Dice

    def spawn(
        self, program: str, options: Iterable[str], *, name: str, cwd: Path, says_ready: str
    ) -> LoggedProcess:
        """Start a program; raises BinariesMissing."""
        command = [str(self.binaries[program]), *options]
        return LoggedProcess(self.guard, command, name=name, cwd=cwd, says_ready=says_ready)


def flags(options: Mapping[str, str]) -> list[str]:
    """Options as these programs take them."""
    return [f"--{name}={value}" for name, value in options.items()]


def cache_folder() -> Path:
    """Where `make kube` puts what it builds: outside every checkout, so that all share it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).absolute() / "leafcast" / "kube" / KUBE_VERSION


def named_folders() -> list[Path]:
    """The folders of programs that the environment names, the first first."""
    return [Path(os.environ[name]).absolute() for name in ASSETS if os.environ.get(name)]


def find_binaries() -> Binaries:
    """Look in the folders that the environment names, then in the cache, then on PATH."""
    places = [str(folder) for folder in (*named_folders(), cache_folder())]
    search = os.pathsep.join([*places, os.environ.get("PATH", os.defpath)])
    found = {name: shutil.which(name, path=search) for name in ALL}
    return Binaries({name: Path(where).absolute() for name, where in found.items() if where})
