"""How often a centre writes backups, where to, for whom; and how the last ones went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from leafcast.backups.refusals import BackupUnusable
from relay.atomic_file import atomic_write
from schemas.content.operator_box import KEY_BYTES, key_id
from schemas.values.codec import from_json

FILE, STANDING_FILE = "backup.json", "backup-standing.json"


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """What a person said last; `seconds` 0 is off."""

    seconds: int = 0
    keep: int = 96
    # The folder; "" before one was named.
    to: str = ""
    # The operator's public key; empty before one was named.
    public: bytes = b""
    # By which pieces are named and closed; the centre's alone.
    secret: bytes = field(default=b"", repr=False)

    @property
    def key(self) -> str:
        """What people call the key; "" without one."""
        return key_id(self.public) if self.public else ""

    def encoded(self) -> str:
        """As their file says them."""
        said = {**asdict(self), "public": self.public.hex(), "secret": self.secret.hex()}
        return json.dumps(said, indent=2) + "\n"

    def form(self) -> dict[str, Any]:
        """What is shown of them: no secret."""
        return {"seconds": self.seconds, "keep": self.keep, "to": self.to, "key": self.key}


@dataclass(frozen=True, slots=True)
class BackupStanding:
    """How the last backups went; times are ms since 1970, 0 if there was none."""

    made_ms: int = 0
    file: str = ""
    # What it took in its folder beside former ones, and how long it took.
    bytes: int = 0
    seconds: float = 0.0
    # The last one that was asked for by itself, in a file of its own.
    whole_ms: int = 0
    # Since when backups fail, why, and what to do; 0 if the last one did not.
    failing_ms: int = 0
    reason: str = ""
    remedy: str = ""
    # Whether the last ones, on the timer and by itself, lie on the disk of the data directory.
    same_disk: bool = False
    whole_same_disk: bool = False

    def failed(self, now_ms: int, reason: str, remedy: str) -> BackupStanding:
        """The same after one that failed."""
        since = self.failing_ms or now_ms
        return replace(self, failing_ms=since, reason=reason, remedy=remedy)


def kept_settings(folder: Path) -> BackupSettings:
    """What the data directory says; raises BackupUnusable."""
    form = _form(folder / FILE)
    if form is None:
        return BackupSettings()
    try:
        public, secret = bytes.fromhex(form["public"]), bytes.fromhex(form["secret"])
        if {len(public), len(secret)} - {0, KEY_BYTES}:
            raise ValueError("half a key")  # noqa: TRY301 - one answer to all of them
        seconds, keep = int(form["seconds"]), int(form["keep"])
        return BackupSettings(seconds, max(keep, 1), str(form["to"]), public, secret)
    except (KeyError, ValueError, TypeError) as error:
        raise _damaged(folder / FILE) from error


def keep_settings(folder: Path, settings: BackupSettings) -> None:
    """Remember them for the next start; raises OSError."""
    atomic_write(folder / FILE, settings.encoded())


def kept_standing(folder: Path) -> BackupStanding:
    """How the last ones went; as if there was none, if that is damaged."""
    try:
        form = _form(folder / STANDING_FILE) or {}
        # Files of a release before do not say of disks.
        form = {"same_disk": False, "whole_same_disk": False, **form}
        standing = BackupStanding(**{name: form[name] for name in asdict(_NONE)})
        times = standing.made_ms, standing.failing_ms, standing.whole_ms, standing.seconds
        # Whatever the file says: the sum of what are no numbers raises.
        return standing if sum(times) >= 0 else _NONE
    except (BackupUnusable, KeyError, TypeError):
        return _NONE


def keep_standing(folder: Path, standing: BackupStanding) -> None:
    """Remember it for the next start; raises OSError."""
    text = json.dumps(asdict(standing), indent=2) + "\n"
    # What it says can be had again from the folder, or by the next backup.
    atomic_write(folder / STANDING_FILE, text, durable=False)


_NONE = BackupStanding()


def _form(file: Path) -> Mapping[str, Any] | None:
    try:
        form = from_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _damaged(file) from error
    if not isinstance(form, dict):
        raise _damaged(file)
    return form


def _damaged(file: Path) -> BackupUnusable:
    return BackupUnusable(
        file, "it is damaged", "remove it, and say `leafcast backup --every` anew"
    )
