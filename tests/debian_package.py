"""Debian packages for amd64 and arm64, of the wheel and the lock file: `make deb` writes them.

All lies below /opt/leafcast: an interpreter, relocatable and not Debian's own, and a virtual
environment on it. So dpkg knows each file, nothing is fetched or run at installation but what makes
the user, and a new release of Debian with another Python changes nothing. tests/interpreter.py
builds the interpreter; the libraries that it stands on are those of the system, which Debian mends.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.sources import WheelFile

from tests.bills import of_files, package_bill, wheel_bill, write_bill
from tests.interpreter import MACHINES, PYTHON, interpreter, own_arch, version

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "deploy" / "requirements.txt"
SHARE = ROOT / "deploy" / "share"
UNITS = ROOT / "deploy" / "systemd"
HOME = Path("opt/leafcast")
_LIBRARY = Path("lib") / f"python{PYTHON}"
_SITE = HOME / _LIBRARY / "site-packages"
# Nothing of ours needs them, and some need what was not built. Modules are compiled anew.
_LEFT_OUT = (
    *("ensurepip", "idlelib", "pydoc_data", "sqlite3", "tkinter", "turtledemo", "config-*"),
    "__pycache__",
)
# What is built for an older C library runs on a newer one; Debian 12 has 2.36.
_PLATFORMS = (*(f"manylinux_2_{minor}" for minor in range(36, 4, -1)), "manylinux2014")
# Pure Python that is published as a source package only.
_SOURCES = ("nkeys",)
_PROGRAMS = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"])
_COMPLETIONS = {
    "bash-completion/completions": "bash-completion/completions",
    "zsh/site-functions": "zsh/vendor-completions",
    "fish/vendor_completions.d": "fish/vendor_completions.d",
}


def _run(*words: object) -> None:
    subprocess.run(tuple(map(str, words)), check=True, stdout=subprocess.DEVNULL)


def fetch_wheels(arch: str, folder: Path, python: str = PYTHON) -> None:
    """The wheels of the lock file for this architecture, by their hashes."""
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    platforms = [word for one in _PLATFORMS for word in ("--platform", f"{one}_{MACHINES[arch]}")]
    form = ("--python-version", python, "--only-binary", ":all:", "--no-deps")
    form = (*form, *(word for name in _SOURCES for word in ("--no-binary", name)))
    what = ("--require-hashes", "--requirement", LOCK)
    _run(*pip, "download", "--dest", folder, *form, *platforms, *what)
    for source in folder.glob("*.tar.gz"):
        _run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, source)
        source.unlink()


def stage(wheels: Iterable[Path], python: Path, compiler: Path, root: Path) -> None:
    """Everything as it is to lie on the machine, below `root`.

    `python` has the interpreter of that machine, `compiler` the same for this one.
    """
    own, home = HOME / "python", root / HOME
    (root / own / "bin").mkdir(parents=True)
    shutil.copy2(python / "bin" / f"python{PYTHON}", root / own / "bin")
    left_out = shutil.ignore_patterns(*_LEFT_OUT)
    shutil.copytree(python / _LIBRARY, root / own / _LIBRARY, ignore=left_out)
    for wheel in wheels:
        _unpack(wheel, root)
    (home / "bin" / "python").symlink_to(f"../python/bin/python{PYTHON}")
    (home / "bin" / "python3").symlink_to("python")
    (home / "pyvenv.cfg").write_text(
        f"home = /{own}/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n"
    )
    # Of the sources' content and not of their times, so that the same bytes come out anywhere.
    form = ("--invalidation-mode", "unchecked-hash", "-s", root, "-p", "/", "-q")
    where = (root / own / _LIBRARY, root / _SITE)
    _run(compiler / "bin" / f"python{PYTHON}", "-IB", "-m", "compileall", *form, *where)
    _place(python, root)


def _unpack(wheel: Path, root: Path) -> None:
    schemes = {
        **dict.fromkeys(("purelib", "platlib"), str(Path("/", _SITE))),
        "headers": str(Path("/", HOME, "include")),
        "scripts": str(Path("/", HOME, "bin")),
        "data": str(Path("/", HOME)),
    }
    interpreter = str(Path("/", HOME, "bin", "python"))
    with WheelFile.open(wheel) as source:
        to = SchemeDictionaryDestination(schemes, interpreter, "posix", destdir=str(root))
        install(source, to, {"INSTALLER": b"dpkg\n"})


def _place(python: Path, root: Path) -> None:
    """What the system looks for elsewhere: programs, units, manual pages, completions."""
    programs = root / "usr" / "bin"
    programs.mkdir(parents=True)
    for name in _PROGRAMS:
        (programs / name).symlink_to(Path("/", HOME, "bin", name))
    shutil.copytree(UNITS, root / "usr" / "lib" / "systemd" / "system")
    share = root / "usr" / "share"
    for there, here in _COMPLETIONS.items():
        shutil.copytree(SHARE / there, share / here)
    manual = share / "man" / "man1"
    manual.mkdir(parents=True)
    for page in sorted((SHARE / "man" / "man1").iterdir()):
        (manual / f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
    documents = share / "doc" / "leafcast"
    documents.mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", documents / "copyright")
    shutil.copyfile(python / "copyright", documents / "copyright.python")


def packages(wheel: Path, arches: Iterable[str], pythons: Path, out: Path) -> list[Path]:
    """Write the package of each architecture into a folder; `pythons` has their interpreters."""
    made = []
    with tempfile.TemporaryDirectory() as held:
        for arch in arches:
            wheels, root = Path(held, arch, "wheels"), Path(held, arch, "root")
            fetch_wheels(arch, wheels)
            files = [*sorted(wheels.iterdir()), wheel]
            stage(files, pythons / arch, pythons / own_arch(), root)
            made.append(packed(arch, wheel.name.split("-")[1], version(pythons), root, out))
    return made


def packed(arch: str, version: str, python: str, root: Path, out: Path) -> Path:
    """The package of what lies below a root; of times, owners and others' rights nothing stays.

    `python` is the version of the source that its interpreter was built from.
    """
    moment = _moment()
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (int(moment), int(moment)), follow_symlinks=False)
    environment = {
        **os.environ,
        "ARCH": arch,
        "VERSION": version,
        "PYTHON_SOURCE": f"python{PYTHON} (= {python})",
        "SOURCE_DATE_EPOCH": moment,
        "ROOT": str(root),
    }
    file = out.absolute() / f"leafcast_{version}_{arch}.deb"
    nfpm = Path(sys.executable).with_name("nfpm")
    words = ("package", "--packager", "deb", "--config", "deploy/deb/nfpm.yaml", "--target")
    subprocess.run([nfpm, *words, file], check=True, cwd=ROOT, env=environment)
    return file


def _moment() -> str:
    """That of the commit, or the one that SOURCE_DATE_EPOCH names, in seconds."""
    asked = ("git", "log", "-1", "--format=%ct")
    return (
        os.environ.get("SOURCE_DATE_EPOCH")
        or subprocess.check_output(asked, cwd=ROOT, text=True).strip()
    )


if __name__ == "__main__":
    folder = ROOT / "dist"
    (built,) = folder.glob("leafcast-*.whl")
    pythons = interpreter()
    for one in packages(built, sys.argv[1:] or tuple(MACHINES), pythons, folder):
        sys.stderr.write(f"{one}\n")
    bill = package_bill(wheel_bill(), f"python{PYTHON}", version(pythons))
    write_bill(folder, of_files(bill, folder.glob("leafcast_*.deb")), "-deb")
