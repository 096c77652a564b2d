"""What a unit finds of a machine: a program that may start, and files that are there each time."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from leafcast.service.installed import ServiceUnusable

HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108
"""What ProtectHome and PrivateTmp take from our units."""
PASSING = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/dev/shm")))  # noqa: S108
"""Where nothing stays."""
USUAL = tuple(Path(it, "leafcast") for it in ("/opt/leafcast/bin", "/usr/local/bin", "/usr/bin"))
"""Where packages lay the program."""
_INSTALL = "python3 -m venv /opt/leafcast, and /opt/leafcast/bin/pip install leafcast"


def own_program() -> tuple[Path, ...]:
    """This program, and what it is made of, each where it really lies; raises ServiceUnusable."""
    beside = Path(sys.executable).absolute().parent / "leafcast"
    found = beside if beside.exists() else shutil.which("leafcast")
    if found is None:
        remedy = f"install Leafcast as a program: {_INSTALL}"
        raise ServiceUnusable("leafcast", "the program is not in PATH", remedy)
    program = Path(found)
    return program, program.resolve(), Path(sys.executable).resolve(), Path(__file__).resolve()


def program_for(root: Path, own: Sequence[Path]) -> str:
    """The program that a unit of the system at `root` starts, as that system names it.

    `own` is what `own_program` says; in an image it counts only if it is there, too. Raises
    ServiceUnusable.
    """
    if root == Path("/"):
        if unseen := next((it for it in own if _lies_in(it, HIDDEN)), None):
            place = _lies_in(unseen, HIDDEN)
            reason = f"{unseen} is below {place}, of which a service sees nothing"
            raise ServiceUnusable(own[0], reason, f"install it elsewhere: {_INSTALL}")
        return str(own[0])
    for program in (own[0], *USUAL):
        at = root / program.relative_to("/")
        # A link in an image leads to where it will lie.
        if (at.exists() or at.is_symlink()) and not _lies_in(program, HIDDEN):
            return str(program)
    looked = ", ".join(map(str, USUAL))
    reason = f"there is no program leafcast in it, at {looked}"
    raise ServiceUnusable(root, reason, "install Leafcast in that image first")


def launcher_for(root: Path, program: str) -> str:
    """The launcher that came with a program, as the system at `root` names it.

    Raises ServiceUnusable.
    """
    launcher = Path(program).with_name("leafcast-launcher")
    at = root / launcher.relative_to("/")
    if at.exists() or at.is_symlink():
        return str(launcher)
    reason = f"there is no {launcher}, which installs what that publisher signed"
    raise ServiceUnusable("--publisher", reason, f"install it there, or leave it out: {_INSTALL}")


def file_for(root: Path, option: str, file: Path) -> str:
    """A file as the system at `root` names it; raises ServiceUnusable."""
    own = file.expanduser().absolute()
    if not own.is_relative_to(root.absolute()):
        reason = f"{own} is not in {root}, so that system does not have it"
        raise ServiceUnusable(option, reason, f"put it into {root}, and name it there")
    there = Path("/") / own.relative_to(root.absolute())
    if place := _lies_in(there, PASSING):
        reason = f"{there} is gone once {place} is emptied, and the service needs it at each start"
        raise ServiceUnusable(option, reason, "keep it elsewhere, as in /etc/leafcast")
    return str(there)


def _lies_in(path: Path, folders: Sequence[Path]) -> Path | None:
    return next((it for it in folders if path.is_relative_to(it)), None)
