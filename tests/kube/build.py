"""`make kube`: finds the programs of a Kubernetes control plane, or builds them, and says where.

`python -m tests.kube.build` prints the folder that holds them, or several as PATH has them. What no
folder that the environment names holds is built from the modules that go.mod names here, once for
all checkouts of a user, into a folder of the cache.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leafcast.local.kube_servers.binaries import (
    ALL,
    ASSETS,
    ETCD,
    KUBE_VERSION,
    KWOK,
    STAGES,
    BinariesMissing,
    cache_folder,
    find_binaries,
    named_folders,
)

HERE = Path(__file__).parent
FROM = "from.json"
ALIVE_SECONDS = 15
MAJOR, MINOR, _ = KUBE_VERSION.removeprefix("v").split(".")
_VERSION = {
    "k8s.io/component-base/version.gitVersion": KUBE_VERSION,
    "k8s.io/component-base/version.gitMajor": MAJOR,
    "k8s.io/component-base/version.gitMinor": MINOR,
    "k8s.io/client-go/pkg/version.gitVersion": KUBE_VERSION,
}
# The folder here of its go.mod, its package, and minutes on two cores with nothing cached.
_ETCD = ("etcd", "go.etcd.io/etcd/server/v3", 1)
_KWOK = ("kwok", "sigs.k8s.io/kwok/cmd/kwok", 2)
KSTATUS = "kstatus"
"""Ours: what kstatus, by which other tools wait, makes of objects."""
_KSTATUS = ("kstatus", ".", 1)
HELM3, HELM4 = "helm3", "helm4"
"""Both in one module, so that what they share is built once."""
_HELM = {
    HELM3: ("helm", "helm.sh/helm/v3/cmd/helm", 2),
    HELM4: ("helm", "helm.sh/helm/v4/cmd/helm", 1),
}
_KSTATUS_MODULE = "sigs.k8s.io/cli-utils"
BUILT = (*ALL, KSTATUS, *_HELM)
_KUBE_MINUTES = {"kube-apiserver": 12, "kube-controller-manager": 6}


class CannotBuild(Exception):
    """The programs cannot be built here; says why, and what to do instead."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def source(name: str) -> tuple[Path, str, int]:
    """The folder with the go.mod of a program, its package, and how many minutes it may take."""
    kube = ("", f"k8s.io/kubernetes/cmd/{name}", _KUBE_MINUTES.get(name, 3))
    others = {ETCD: _ETCD, KWOK: _KWOK, KSTATUS: _KSTATUS, **_HELM}
    folder, package, minutes = others.get(name, kube)
    return HERE / folder, package, minutes


def version(name: str) -> str:
    """The version of a program's module, by its go.mod; of ours its text, too."""
    folder, package, _ = source(name)
    ours = ""
    if name == KSTATUS:
        package = _KSTATUS_MODULE
        ours = f" {hashlib.sha256((folder / 'main.go').read_bytes()).hexdigest()[:12]}"
    for line in (folder / "go.mod").read_text().splitlines():
        words = line.split()
        if len(words) >= 2 and (package == words[0] or package.startswith(words[0] + "/")):
            return f"{words[0]}@{words[1]}{ours}"
    raise CannotBuild(f"{folder / 'go.mod'} names no version of {package}")


def command(go: str, name: str, out: Path) -> list[str]:
    _, package, _ = source(name)
    flags = "-s -w"
    if package.startswith("k8s.io/kubernetes/"):
        flags += "".join(f" -X {variable}={value}" for variable, value in _VERSION.items())
    return [go, "build", "-trimpath", "-ldflags", flags, "-o", str(out), package]


def find_go() -> str:
    go = shutil.which("go")
    if go is None:
        raise CannotBuild(
            "there is no Go here to build Kubernetes with: install Go 1.26 or later "
            "(https://go.dev/dl), or name a folder that holds the programs: "
            f"{ASSETS[0]}=/path/to/programs ({', '.join(ALL)})"
        )
    return go


def build(go: str, name: str, cache: Path) -> None:
    """Build one program into the cache; it appears there whole."""
    folder, package, minutes = source(name)
    say(f"building {name} ({version(name)}): may take {minutes} min on two cores ...")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as temporary:
        out = Path(temporary) / name
        run(command(go, name, out), folder, f"still building {name}")
        if name == KWOK:
            copy_stages(go, folder, package, cache)
        out.replace(cache / name)
    remember(cache, name)
    say(f"built {name} in {time.monotonic() - began:.0f} s")


def run(words: list[str], folder: Path, alive: str) -> str:
    """Run Go, and say now and then that it lives; its output. Raises CannotBuild."""
    began = time.monotonic()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while True:
            try:
                said, faults = process.communicate(timeout=ALIVE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                say(f"  {alive}, {time.monotonic() - began:.0f} s")
            except BaseException:
                process.terminate()
                raise
    if process.returncode:
        last = "\n  ".join(faults.splitlines()[-15:])
        raise CannotBuild(f"`{' '.join(words[:2])}` failed in {folder}:\n  {last}")
    return said


def copy_stages(go: str, folder: Path, package: str, cache: Path) -> None:
    """Take along from kwok's module what tells it how Nodes and Pods come to life."""
    listed = ["list", "-f", "{{.Module.Dir}}", package]
    module = Path(run([go, *listed], folder, "still looking for kwok's module").strip())
    stages = cache / STAGES
    stages.mkdir(exist_ok=True)
    for part in ("node", "pod"):
        for file in sorted(module.glob(f"kustomize/stage/{part}/fast/{part}-*.yaml")):
            draft = stages / f"{file.name}.new"
            draft.write_bytes(file.read_bytes())
            draft.replace(stages / file.name)
    if not list(stages.glob("pod-*.yaml")):
        raise CannotBuild(f"{module} holds no stages for Pods")


def remembered(cache: Path) -> dict[str, str]:
    try:
        return dict(json.loads((cache / FROM).read_text()))
    except (FileNotFoundError, ValueError):
        return {}


def remember(cache: Path, name: str) -> None:
    draft = cache / f"{FROM}.new"
    draft.write_text(json.dumps({**remembered(cache), name: version(name)}, indent=2) + "\n")
    draft.replace(cache / FROM)


def lacking(cache: Path) -> list[str]:
    """What neither a folder that the environment names nor the cache holds, at its version."""
    named = os.pathsep.join(map(str, named_folders()))
    built = remembered(cache)
    ready = {name for name in BUILT if named and shutil.which(name, path=named)}
    if not find_binaries().stages:
        ready.discard(KWOK)
    return [
        name
        for name in BUILT
        if name not in ready and (built.get(name) != version(name) or not (cache / name).exists())
    ]


@contextmanager
def alone(cache: Path) -> Iterator[None]:
    """One build at a time: who comes second finds what the first has built."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process builds in {cache}; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folders() -> str:
    """Where the programs are, as PATH has it."""
    found = find_binaries()
    found.need(*ALL)
    return os.pathsep.join(dict.fromkeys(str(found[name].parent) for name in ALL))


def main() -> int:
    cache = cache_folder()
    # As Ctrl-C does: what Go has begun ends, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if lacking(cache):
            go = find_go()
            with alone(cache):
                missing = lacking(cache)
                for left in cache.glob("building-*"):  # By a build that was killed.
                    shutil.rmtree(left, ignore_errors=True)
                if missing:
                    say(f"{', '.join(missing)}: to be built into {cache}, once")
                for name in missing:
                    build(go, name, cache)
        print(folders())
    except (CannotBuild, BinariesMissing, OSError) as error:
        say(f"make kube: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
