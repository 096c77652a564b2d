"""The folder that holds a tree of this machine: what lies where, which version, who uses it now."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leafcast.space_settings import CentreSpaces, read_centre_spaces
from relay.atomic_file import atomic_write, make_folder
from schemas.values.faults import Faulty, Unusable
from schemas.values.identity import NodePath

FORMAT = 1
"""The layout of the folder; a newer program may raise it, and an older one refuses it then."""
ENVIRONMENT = "LEAFCAST_DATA_DIR"
LOCK_FILE = "lock"
JOINED_FILE = "joined.json"
"""What the folder of a node that joined a tree is."""
TREE_FILE = "tree.json"
"""What the tree of a folder is; without it there is none."""
MEMBER_FILE = "member.json"
"""It lies in the data directory of one member of a node."""
RESTORING, PLACING, DRAFTS = "restoring-members", "restore-begun.tar", "restore-files"
"""While a backup is put in place: what is to be moved, of three members or of a centre alone."""
OTHERS = 0o077
"""What is taken from the rights of all that a program writes: nobody but its owner sees it."""
AROUND = "around"
"""In `tree.json` of a member of a tree on one machine: what that of the whole tree says."""
ENDING_FILE = "ending"
"""It lies in that of a member of a centre whose members are all told to end."""


class DataDirUnusable(Unusable):
    """A data directory that cannot be used; says why, and what to do."""

    word = "data directory "


def make_private(folder: Path) -> None:
    """Make the folder, or keep others out of the one there is.

    Raises DataDirUnusable for what another user owns or may write in, and OSError.
    """
    make_folder(folder)
    check_owner(folder)
    found = folder.stat()
    # A folder may be lent to a group of ours, as volumes are, and to no one else.
    lent = found.st_gid in {os.getegid(), *os.getgroups()}
    open_to_others = found.st_mode & 0o002 or (found.st_mode & 0o020 and not lent)
    mine = found.st_uid == os.geteuid()
    # What lies in an open folder may be another's, who so could tell us what to run.
    if open_to_others and mine and any(folder.iterdir()):
        remedy = f"see that all in it is yours and run chmod go-w {folder}, or name another"
        raise DataDirUnusable(folder, "other users may write in it", remedy)
    if open_to_others and not mine:
        remedy = f"run chmod go-w on it, or name a folder in it, such as {folder / 'leafcast'}"
        raise DataDirUnusable(folder, "other users may write in it", remedy)
    if mine and found.st_mode & 0o077:
        folder.chmod(0o700)


def check_owner(folder: Path) -> None:
    """Refuse a folder of another user, who could give us his own; raises DataDirUnusable.

    What is not there yet is nobody's.
    """
    try:
        owner = folder.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError as error:
        remedy = "work as the user that it belongs to, or name another --data-dir"
        raise DataDirUnusable(folder, "it belongs to another user", remedy) from error
    if owner not in (os.geteuid(), 0):
        remedy = "work as that user, or name another --data-dir"
        raise DataDirUnusable(folder, f"it belongs to another user (uid {owner})", remedy)


@dataclass(frozen=True, slots=True)
class DataDir:
    """The places in a data directory. Nothing is made before it is written."""

    folder: Path

    @classmethod
    def at(cls, folder: Path | None) -> DataDir:
        """The folder named, or the default one."""
        return cls(folder.absolute()) if folder else cls.default()

    @classmethod
    def default(cls) -> DataDir:
        """Where `leafcast up` keeps its tree unless it is told otherwise."""
        if named := os.environ.get(ENVIRONMENT):
            return cls(Path(named).absolute())
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return cls(Path(state) / "leafcast")

    @property
    def log(self) -> Path:
        """What the daemon says."""
        return self.folder / "daemon.log"

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    def node(self, path: NodePath) -> Path:
        """The folder of one node: its server, its credentials."""
        return self.folder / ("centre" if path.is_root else path.domain)

    def tree(self) -> dict[str, Any] | None:
        """What `tree.json` says: `format` and `shape`; None in a new folder.

        Raises DataDirUnusable if it is damaged, or of a newer version.
        """
        form = self._read(TREE_FILE)
        if form is not None and form.get("format") != FORMAT:
            reason = f"it has format {form.get('format')!r}, and this program writes {FORMAT}"
            remedy = "use the version of leafcast that made it, or another --data-dir"
            raise DataDirUnusable(self.folder, reason, remedy)
        return form

    def is_of_trios(self) -> bool:
        """Whether it holds a tree whose centre and relays have several members each."""
        try:
            return int((self.tree() or {}).get("members", 1)) > 1
        except (DataDirUnusable, ValueError, TypeError):
            return False

    def has_members(self) -> bool:
        """Whether its centre has several members: it is of trios, or is one member's."""
        return self.is_of_trios() or (self.folder / MEMBER_FILE).exists()

    def is_half_restored(self) -> bool:
        """Whether a restore into a new folder was cut off: nothing has run on what it left."""
        begun = any((self.folder / it).exists() for it in (RESTORING, PLACING, DRAFTS))
        return begun and not (self.folder / TREE_FILE).exists()

    def asks_members(self) -> bool:
        """Whether commands here ask a centre that has several members."""
        return self.has_members() and not self.is_of_node_below()

    def write_tree(self, form: Mapping[str, Any]) -> None:
        self._write(TREE_FILE, {"format": FORMAT, **form})

    def daemon(self) -> dict[str, Any] | None:
        """`pid`, `url` of the centre, and `ready` of the daemon that runs, or of the last one."""
        return self._read("daemon.json")

    def write_daemon(self, form: Mapping[str, Any]) -> None:
        self._write("daemon.json", form)

    def forget_daemon(self) -> None:
        (self.folder / "daemon.json").unlink(missing_ok=True)

    def forget_ended_daemon(self) -> None:
        """Forget what a daemon said that was killed: in a container the next has its number."""
        if (self.folder / "daemon.json").exists():
            # Whoever else holds the directory has said what is there.
            with suppress(DataDirUnusable), self.locked():
                self.forget_daemon()

    def say_ending(self) -> None:
        """Have the member here know, before it is told to end, that no other one follows it."""
        (self.folder / ENDING_FILE).touch(mode=0o600)

    def is_ending(self) -> bool:
        return (self.folder / ENDING_FILE).exists()

    def forget_ending(self) -> None:
        (self.folder / ENDING_FILE).unlink(missing_ok=True)

    def admin(self) -> dict[str, Any] | None:
        """What the command line connects with: `url` of the centre, `seed` to ask it.

        Of another node also `node`, its path.
        """
        return self._read("admin.json")

    def is_of_node_below(self) -> bool:
        """Whether a node of a tree lies here that is not the centre, with what runs beside it."""
        if (self.folder / JOINED_FILE).exists():
            return True
        return bool((self.admin() or {}).get("node"))

    def write_admin(self, form: Mapping[str, Any]) -> None:
        self._write("admin.json", form)

    def spaces(self) -> CentreSpaces:
        """The centre's spaces: the embedded ones, unless others were named."""
        try:
            return read_centre_spaces(self._read("spaces.json"))
        except (Faulty, KeyError, TypeError) as error:
            remedy = "remove it, and name the spaces again"
            raise DataDirUnusable(self.folder, "spaces.json is damaged", remedy) from error

    def write_spaces(self, spaces: CentreSpaces) -> None:
        self._write("spaces.json", spaces.form())

    def in_use(self) -> bool:
        """Whether a daemon runs on it now."""
        try:
            descriptor = os.open(self.folder / LOCK_FILE, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except PermissionError as error:
            remedy = "work as that user, or name another --data-dir"
            raise DataDirUnusable(self.folder, "it belongs to another user", remedy) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Use it alone; raises DataDirUnusable if another process does."""
        descriptor = os.open(self.folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                remedy = "end that (`leafcast down`, or its `join`), or name another --data-dir"
                raise DataDirUnusable(self.folder, "another process uses it", remedy) from error
            yield
        finally:
            os.close(descriptor)

    def _read(self, name: str) -> dict[str, Any] | None:
        file = self.folder / name
        try:
            form = json.loads(file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            remedy = "work as that user, or name another --data-dir"
            raise DataDirUnusable(self.folder, "it belongs to another user", remedy) from error
        except (ValueError, RecursionError) as error:
            remedy = "restore it from a backup, or name another --data-dir"
            raise DataDirUnusable(self.folder, f"{name} is damaged", remedy) from error
        if not isinstance(form, dict):
            raise DataDirUnusable(self.folder, f"{name} is damaged", "name another --data-dir")
        return form

    def _write(self, name: str, form: Mapping[str, Any]) -> None:
        atomic_write(self.folder / name, json.dumps(form, indent=2) + "\n")
