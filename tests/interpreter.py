"""CPython for the Debian packages: built once from Debian's source, and kept for all checkouts.

The source is that of a later Debian, SOURCE_SUITE, with what Debian's security team mends in it;
the C library, the other libraries and the compiler are those of SUITE, the oldest Debian that the
packages are for. So it runs there and on later ones. It is built in a bare root of that Debian,
for both architectures, in 15 minutes of two cores, and lies in a folder of the user's cache by
the version of its source and by how it was built: both decide whether it is built anew.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Each architecture as Debian and as wheels call it."""
SUITE, SOURCE_SUITE, PYTHON = "bookworm", "trixie", "3.13"
_RECIPE = ROOT / "deploy" / "deb" / "build-python.sh"
_MIRROR = "http://deb.debian.org/debian"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_TOOLS = ("gcc", "libc6-dev", "make", "autoconf", "dpkg-dev", "xz-utils", "pkg-config")
_LIBRARIES = (
    *("libbz2-dev", "libexpat1-dev", "libffi-dev", "liblzma-dev", "libssl-dev", "uuid-dev"),
    "zlib1g-dev",
)
_LOOP, _LOOP_BYTES_MIN, _SYMBOLS = "_PyEval_EvalFrameDefault", 10_000, "symbols"
_LACKING = (
    "error: no interpreter for the Debian packages: {lacks}\n"
    "  It is built on a machine with apt: apt install mmdebstrap debian-archive-keyring"
)
_SOURCE = re.compile(rf"'(\S+/python{re.escape(PYTHON)}_(\S+)\.dsc)'")


def own_arch() -> str:
    """What Debian calls this machine."""
    return {machine: arch for arch, machine in MACHINES.items()}[platform.machine()]


def kept() -> Path | None:
    """The folder of the newest interpreter that was built by this recipe, if there is one."""
    found = _folder().glob(f"*-{_recipe()}")
    return max(found, key=lambda folder: folder.stat().st_mtime, default=None)


def version(kept: Path) -> str:
    """The version of Debian's source package that an interpreter was built from."""
    return kept.name.rpartition("-")[0]


def interpreter() -> Path:
    """The interpreter of Debian's newest source, by architecture: bin/, lib/ and copyright."""
    with tempfile.TemporaryDirectory(prefix="leafcast-python-") as held:
        apt = _apt(Path(held, "apt"))
        source = (*apt, "source", "--download-only", f"python{PYTHON}")
        listed = subprocess.run([*source, "--print-uris"], check=True, capture_output=True)
        newest = _SOURCE.search(listed.stdout.decode())
        assert newest, f"no source package python{PYTHON} in {SOURCE_SUITE} of the mirror"
        folder = _folder() / f"{unquote(newest[2])}-{_recipe()}"
        if not folder.is_dir():
            package = Path(held, "package")
            package.mkdir()
            subprocess.run(source, check=True, cwd=package, stdout=subprocess.DEVNULL)
            _build(package, folder)
    return folder


def refuse_cold_loop(symbols: Path) -> None:
    """Refuse an interpreter whose loop that runs all of Python counts as never run.

    `symbols` is what `nm -S` says of it. A compiler that loses the profile of that loop leaves a
    few hundred bytes of it where what runs often lies, and puts the rest among what never runs.
    """
    lines = (line.split() for line in symbols.read_text().splitlines())
    sizes = {words[3]: int(words[1], 16) for words in lines if len(words) == 4}
    size = sizes.get(_LOOP, 0)
    assert size >= _LOOP_BYTES_MIN, (
        f"{symbols}: only {size} bytes of {_LOOP} are where what runs often lies: "
        f"the compiler lost its profile; look at USED in {_RECIPE.name}"
    )


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "leafcast", "python")


def _recipe() -> str:
    """Names how it is built: the script, and what it is built with."""
    said = (_RECIPE.read_text(), SUITE, *_TOOLS, *_LIBRARIES, *MACHINES)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:12]


def _sources(kind: str, suite: str) -> list[str]:
    """Lines for apt: a suite, what was updated in it, and what its security team mends."""
    mirror = os.environ.get("DEBIAN_MIRROR", _MIRROR)
    suites = (
        (mirror, suite),
        (mirror, f"{suite}-updates"),
        (f"{mirror}-security", f"{suite}-security"),
    )
    return [f"{kind} [signed-by={_KEYRING}] {at} {name} main" for at, name in suites]


def _apt(state: Path) -> tuple[str, ...]:
    """The command apt-get, which knows the sources of SOURCE_SUITE alone; apt checks who signed."""
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources.list").write_text("\n".join(_sources("deb-src", SOURCE_SUITE)) + "\n")
    said = {
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "-",
    }
    apt = ("apt-get", "-qq", *(word for name in said for word in ("-o", f"{name}={said[name]}")))
    subprocess.run((*apt, "update"), check=True, stdout=subprocess.DEVNULL)
    return apt


def _build(package: Path, folder: Path) -> None:
    """Build what lies in a folder as a source package; it appears whole."""
    if not shutil.which("mmdebstrap"):
        raise SystemExit(_LACKING.format(lacks="there is no program mmdebstrap"))
    sys.stderr.write(f"building {folder.name}, once: 15 minutes of two cores\n")
    shutil.copy2(_RECIPE, package)
    folder.parent.mkdir(parents=True, exist_ok=True)
    own = own_arch()
    triplets = {arch: f"{MACHINES[arch]}-linux-gnu" for arch in sorted(MACHINES, key=own.__ne__)}
    compilers = (
        f"gcc-{triplet}".replace("_", "-") for arch, triplet in triplets.items() if arch != own
    )
    libraries = (f"{name}:{arch}" for name in _LIBRARIES for arch in triplets)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as building:
        out = Path(building, "built")
        made = " ".join(triplets.values())
        sized = f"for at in {made}; do $at-nm -S build/$at/python >out/$at/{_SYMBOLS}; done"
        command = f"cd /package && sh {_RECIPE.name} {made} >&2 && {sized}"
        words = (
            "--quiet",
            "--variant=apt",
            f"--architectures={','.join(triplets)}",
            f"--include={' '.join((*_TOOLS, *compilers, *libraries))}",
            "--format=null",
            f"--customize-hook=copy-in {shlex.quote(str(package))} /",
            f"--chrooted-customize-hook={command}",
            f"--customize-hook=copy-out /package/out {shlex.quote(building)}",
        )
        where = (SUITE, "-", *_sources("deb", SUITE))
        subprocess.run(("mmdebstrap", *words, *where), check=True, stdout=subprocess.DEVNULL)
        out.mkdir()
        for arch, triplet in triplets.items():
            one = Path(building, "out") / triplet
            refuse_cold_loop(one / _SYMBOLS)
            (one / _SYMBOLS).unlink()
            one.rename(out / arch)
        out.rename(folder)


if __name__ == "__main__":
    sys.stdout.write(f"{interpreter()}\n")
