"""A store carries a mark of its kind, and no server is started on one of another kind.

A nats-server in a cluster deletes the streams of a store that it made alone, 30 s after its start;
and one that is alone opens none of the streams that a cluster made. The mark lies beside the store,
and a person may move one without the other: so what the store holds is looked at, too.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from relay.atomic_file import atomic_write
from schemas.values.codec import from_json

MARK_FILE = "store-kind.json"


@dataclass(frozen=True, slots=True)
class StoreMark:
    """Whose a store is that a cluster made: one without a mark was made by a server alone."""

    tree: str
    node: str
    cluster: str
    member: str

    def __str__(self) -> str:
        return f"of member {self.member} of the trio {self.node} of tree {self.tree}"


class StoreOfAnotherKind(Exception):
    """A store on which a server would lose what it holds; names it, both kinds, and the remedy."""

    def __init__(self, folder: Path, kept: StoreMark | None, wanted: StoreMark | None) -> None:
        kinds = f"its store is {_kind(kept)}, and this server is {_kind(wanted)}"
        super().__init__(f"{folder}: {kinds}; {_remedy(kept)}")
        self.folder, self.kept, self.wanted = folder, kept, wanted


class StoreWithoutItsMark(Exception):
    """A store that was moved, and its mark was not; names it, both kinds, and the remedy."""

    def __init__(self, store: Path, wanted: StoreMark | None) -> None:
        kind = "a server alone" if wanted else "a member of a trio, which no mark beside it names"
        remedy = (
            "move it aside: then this member begins with an empty one, which the others fill"
            if wanted
            else "put it back where it was, with the data directory of that member"
        )
        server = f"this server is {_kind(wanted)} and would lose what it holds"
        super().__init__(f"{store} is of {kind}, and {server}; {remedy}")
        self.store, self.wanted = store, wanted


class StoreMarkDamaged(Exception):
    """A mark that says nothing, so nobody knows what the store is; names file and remedy."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} is damaged, so the kind of the store beside it is not known: restore the file "
            f"from a backup, or move it and {file.parent / 'jetstream'} aside and start it: "
            "the other members fill its store"
        )
        self.file = file


def admit_store(folder: Path, store: Path, mark: StoreMark | None) -> None:
    """Refuse to start a server on a store of another kind, and mark a new one.

    `mark` is None for a server that is no member. Nothing is written for it. Raises
    StoreOfAnotherKind, StoreWithoutItsMark, StoreMarkDamaged or OSError.
    """
    kept, is_used = kept_mark(folder), _is_used(store)
    if kept == mark or (kept is None and not is_used):
        is_clustered = _is_of_cluster(store)
        if is_clustered if mark is None else _has_streams(store) and not is_clustered:
            raise StoreWithoutItsMark(store, mark)
        if mark is not None and kept is None:
            mark_store(folder, mark)
        return
    raise StoreOfAnotherKind(folder, kept, mark)


def mark_store(folder: Path, mark: StoreMark) -> None:
    """Say of which kind the store in a folder is; raises OSError."""
    atomic_write(folder / MARK_FILE, json.dumps(asdict(mark), indent=2) + "\n")


def kept_mark(folder: Path) -> StoreMark | None:
    """The mark of the store in a folder, None if it has none; raises StoreMarkDamaged."""
    file = folder / MARK_FILE
    try:
        form = from_json(file.read_bytes())
        mark = StoreMark(**form)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise StoreMarkDamaged(file) from error
    if not all(type(value) is str for value in form.values()):
        raise StoreMarkDamaged(file)
    return mark


def _is_used(store: Path) -> bool:
    """Whether a server has run on it."""
    return store.is_dir() and any(store.iterdir())


def _is_of_cluster(store: Path) -> bool:
    """Whether a server in a cluster has run on it: it keeps who is in there."""
    return any(store.glob("jetstream/*/_js_"))


def _has_streams(store: Path) -> bool:
    """Whether a server, of whatever kind, has made a stream there."""
    return any(store.glob("jetstream/*/streams/*"))


def _kind(mark: StoreMark | None) -> str:
    return "of a server alone" if mark is None else str(mark)


def _remedy(kept: StoreMark | None) -> str:
    if kept is None:
        return "move the store aside and let this member begin with an empty one"
    return f"start it as member {kept.member} of {kept.node}, or name another data directory"
