"""The services of nodes on this machine: written, started, and taken away again."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leafcast.service.unit import MARK, NodeUnit, service_name
from relay.atomic_file import atomic_write
from schemas.values.faults import Unusable
from schemas.values.identity import NodePath

UNITS, INVITATIONS, STATE = "etc/systemd/system", "etc/leafcast/nodes", "var/lib/leafcast"
PRIVATE_STATE = "var/lib/private/leafcast"
"""Where systemd really keeps what a unit without a user of its own finds in STATE."""
SYSTEMCTL = "systemctl"
BOOTED = Path("/run/systemd/system")
"""It is there where systemd runs this machine: sd_booted(3) says so."""
_ASKED_SECONDS = 120
_Late = subprocess.TimeoutExpired
_PUBLISHER = re.compile(r"^LoadCredential=publisher:(.*)$", re.MULTILINE)
_RIGHTS = (errno.EACCES, errno.EPERM)


class ServiceUnusable(Unusable):
    """A service that cannot be written, started or taken away; says why, and what to do."""

    word = "service "


@dataclass(frozen=True, slots=True)
class Services:
    """Those of the file system at `root`; elsewhere than at / nothing is started or stopped."""

    root: Path = Path("/")

    @property
    def is_live(self) -> bool:
        return self.root == Path("/")

    @property
    def is_running(self) -> bool:
        """Whether there is a service manager to ask; in a container or a chroot there is none."""
        return self.is_live and BOOTED.is_dir()

    def invitation_of(self, path: NodePath) -> Path:
        """Where a node's unit looks for its address and token, once that system runs."""
        return Path("/", INVITATIONS, f"{service_name(path)}.join")

    def unit_file(self, name: str) -> Path:
        return self.root / UNITS / f"{name}.service"

    def names(self) -> list[str]:
        """All that `join --service` wrote here."""
        files = sorted((self.root / UNITS).glob("leafcast-*.service"))
        return [it.stem for it in files if it.read_bytes().startswith(MARK.encode())]

    def publisher_of(self, name: str) -> str:
        """The file of the publisher that a node's unit names, as that system does; else ""."""
        text = self.unit_file(name).read_text() if name in self.names() else ""
        found = _PUBLISHER.search(text)
        return found[1].replace("%%", "%") if found else ""

    def install(self, unit: NodeUnit, invitation: str) -> None:
        """Write the unit and what it needs, and start it; raises ServiceUnusable."""
        if self.is_live and not self.is_running:
            remedy = (
                "start `leafcast join` there by what starts programs, without --service; "
                "or write it into the image of a machine: --service-root DIR"
            )
            raise ServiceUnusable(unit.name, "systemd does not run here", remedy)
        file = self.unit_file(unit.name)
        if file.exists() and unit.name not in self.names():
            reason = f"{file} was written by someone else"
            raise ServiceUnusable(unit.name, reason, "remove that, or start the node yourself")
        kept = self.root / unit.invitation.lstrip("/")
        try:
            for folder in (file.parent, kept.parent):
                folder.mkdir(parents=True, exist_ok=True)
            # Of its own: units that people wrote read theirs in the folder above it.
            kept.parent.chmod(0o700)
            atomic_write(kept, invitation + "\n")
            kept.chmod(0o600)
            atomic_write(file, unit.text)
            file.chmod(0o644)
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}"
            raise ServiceUnusable(unit.name, reason, _remedy(error)) from error
        if self.is_live:
            self._ask("daemon-reload")
        self._ask("enable", f"{unit.name}.service")
        if self.is_live:
            try:
                # One that runs already has another start line now.
                self._ask("restart", f"{unit.name}.service")
            except ServiceUnusable as error:
                # It would be tried every few seconds, also after the next start of the machine.
                self._ask("disable", "--now", f"{unit.name}.service")
                more = f"{error.remedy}; see" if isinstance(error.__cause__, _Late) else "see"
                remedy = f"{more} `journalctl -u {unit.name}`; it is disabled until this runs again"
                raise ServiceUnusable(unit.name, error.reason, remedy) from error

    def remove(self, name: str) -> None:
        """Stop the service, and take away its unit, its token and its state; what is gone is fine.

        Raises ServiceUnusable.
        """
        if self.is_running:
            self._ask("disable", "--now", f"{name}.service")
        elif not self.is_live:
            self._ask("disable", f"{name}.service")
        try:
            if self.is_live and not self.is_running:
                # Nobody is there to be asked, perhaps not even the program that asks.
                for wants in (self.root / UNITS).glob("*.wants"):
                    (wants / f"{name}.service").unlink(missing_ok=True)
            (self.root / INVITATIONS / f"{name}.join").unlink(missing_ok=True)
            for state in (self.root / PRIVATE_STATE / name, self.root / STATE / name):
                if state.is_symlink():
                    state.unlink()
                elif state.exists():
                    shutil.rmtree(state)
            # It goes last: by it a `leave` that was cut short is run again.
            self.unit_file(name).unlink(missing_ok=True)
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}"
            remedy = f"{_remedy(error)}, and run `leafcast leave` again"
            raise ServiceUnusable(name, reason, remedy) from error
        if self.is_running:
            self._ask("daemon-reload")

    def _ask(self, *words: str) -> None:
        at: Sequence[str] = () if self.is_live else (f"--root={self.root}",)
        command = [SYSTEMCTL, *at, *words]
        try:
            done = subprocess.run(  # noqa: S603 - the service manager's own program
                command, capture_output=True, text=True, check=False, timeout=_ASKED_SECONDS
            )
        except _Late as error:
            said = f"{' '.join(command)} is not done after {_ASKED_SECONDS} s"
            remedy = "it may wait for the network: systemctl status network-online.target"
            raise ServiceUnusable(words[-1], said, remedy) from error
        except OSError as error:
            remedy = "run it on a machine with systemd, or without --service"
            raise ServiceUnusable(
                words[-1], f"{SYSTEMCTL} does not run: {error}", remedy
            ) from error
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"it ended with {done.returncode}"
            unit = f" {words[-1]}" if len(words) > 1 else ""
            rights = "" if os.geteuid() == 0 else ", and run it as root"
            remedy = f"see `systemctl status{unit}`{rights}"
            raise ServiceUnusable(words[-1], f"{' '.join(command)}: {said}", remedy)


def _remedy(error: OSError) -> str:
    """What lets it be written: root does not help against a disk that is read-only or full."""
    if error.errno in _RIGHTS:
        return "run it as root"
    if error.errno == errno.EROFS:
        return "have that file system mounted to be written"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room there"
    return "see to that file"
