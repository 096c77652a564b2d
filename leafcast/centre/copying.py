"""A centre goes from one machine to three, or back: what it holds is copied, and the door changes.

No store changes its kind: a server in a cluster deletes what one alone has stored, and one alone
opens no stream of a cluster. While `copying.json` lies in the state of the node, only the member
that it names may be active: the one that makes the copy. The former store is kept aside.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from leafcast.backups.centre_streams import RELAY, SPACE, SPACES, STREAMS, CentreServer, account
from leafcast.backups.restoring import PENDING
from leafcast.backups.whole_file import write_backup
from leafcast.data_dir import DataDir
from leafcast.members.settings import FILE as MEMBER_FILE
from leafcast.members.settings import (
    MEMBERSHIP_FILE,
    ROUTES,
    MemberSettings,
    MemberUnusable,
    kept_member,
)
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.kept_store import kept_store
from leafcast.node.listen_settings import keep_listen_settings, kept_listen_settings
from leafcast.node.options import ActiveMember
from relay.adapters.jetstream.fence import take_fence
from relay.adapters.jetstream.streams import REPLACING
from relay.adapters.server.external_server import ExternalServer
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import AccountSeeds
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.store_key import check_key
from relay.adapters.server.store_mark import MARK_FILE
from relay.adapters.spaces.bucket import fence_of
from relay.atomic_file import atomic_write, make_folder, sync_folder
from relay.ports import Clock, Dice
from schemas.values import subjects
from schemas.values.codec import from_json
from schemas.values.faults import Unusable
from schemas.values.identity import NodePath

FILE = "copying.json"
STORE = "jetstream"
ALONE, OF_MEMBER = "store-alone", "store-of-member"
"""Folders in the data directory: the former store, until a person removes it."""


class CopyingUnusable(Unusable):
    """A file or folder by which no copy can go on; says which, why, and what to do."""


class RunsAlone(Exception):
    """The copy home is written: this member goes on as a centre that runs once."""


@dataclass(frozen=True, slots=True)
class Copying:
    """Who copies; `alone` once the centre is to run there alone, and so it stays.

    With `restored` it is a backup that waits there, which may be older than what others know.
    """

    member: str
    alone: bool = False
    restored: bool = False

    def is_waited_for(self, member: str) -> bool:
        """Whether a member may be active once the copy has ended, and not before."""
        return member != self.member and not self.alone

    def why_not(self, member: str) -> str:
        """Why a member may not be active, "" if it may."""
        if member == self.member:
            return ""
        if self.alone:
            return (
                f"its node runs alone, at {self.member}: end this member, and remove its data "
                "directory once the node there has all you need"
            )
        if self.restored:
            return (
                f"member {self.member} restores the backup of its node, which lies there alone: "
                "start it; if it is lost for good, remove the data directories of all members, and "
                "restore the backup once more"
            )
        return (
            f"member {self.member} copies what the node had when it ran alone, which lies there "
            "alone: start it; if it is lost for good, restore a backup, and remove the data "
            "directories of all members"
        )


def kept_copying(folder: Path) -> Copying | None:
    """What a data directory says; None if nothing is copied. Raises CopyingUnusable."""
    file = folder / FILE
    try:
        return Copying(**from_json(file.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        remedy = "copy it from another member's data directory"
        raise CopyingUnusable(file, "it is damaged", remedy) from error


def keep_copying(folder: Path, copying: Copying) -> None:
    """Say who copies; raises OSError."""
    # A member of the release before knows no `restored`, and reads nothing where that is said.
    form = {name: value for name, value in asdict(copying).items() if value}
    atomic_write(folder / FILE, json.dumps(form) + "\n")


def end_copying(folder: Path) -> None:
    """All of it is there; again is harmless. Raises OSError."""
    (folder / FILE).unlink(missing_ok=True)
    sync_folder(folder)


def is_moving_in(folder: Path, member: str) -> bool:
    """Whether the member with this data directory has to bring what its node had alone."""
    copying = kept_copying(folder)
    return copying == Copying(member)


async def bring_over(place: DataDir, clock: Clock, dice: Dice) -> None:
    """Write what a centre stored alone to where its first tenure as a trio restores it from.

    Its store is put aside first, and only read from then on; again is harmless. Raises what a
    server raises that cannot start, BackupUnusable, BusBroken, StoreKeyRefused, OSError.
    """
    folder, aside = place.node(NodePath()), place.folder / ALONE
    store = kept_store(place.folder).settings()
    # With another key a server would find nothing, and say so of no stream.
    check_key(folder, store.key)
    put_store_aside(place.folder, folder)
    if (place.folder / PENDING).exists():
        return
    seeds = account_seeds(folder, dice)
    async with ProcessGuard() as guard:
        server = EmbeddedServer(aside, NodePath(), seeds, guard=guard, clock=clock, store=store)
        async with server:
            streams = streams_at(server, seeds)
            await write_backup(place.folder / PENDING, place, streams, clock, store.key)


def put_store_aside(data_dir: Path, server: Path) -> None:
    """Keep what a server stored alone, and let it begin with an empty store.

    Again is harmless. Raises CopyingUnusable, OSError.
    """
    if not (server / MARK_FILE).exists():
        _put_aside(server / STORE, data_dir / ALONE / STORE)


async def bring_home(
    place: DataDir, member: ActiveMember, seeds: AccountSeeds, clock: Clock
) -> None:
    """Write what the members stored to where the centre alone restores it from.

    Each stream gets a fence first: of another member's batches nothing lands after that. Raises
    BackupUnusable, BusBroken, StoreKeyRefused.
    """
    key = kept_store(place.folder).settings().key
    streams = streams_at(member.server, seeds)
    for holder, stream in STREAMS:
        async with account(streams, holder, "copying") as connection:
            is_space = holder == SPACE
            subject = fence_of(SPACES[stream]) if is_space else subjects.fence(NodePath(), stream)
            replaces = is_space or stream in REPLACING
            await take_fence(connection, member.tenure, stream, subject, replaces=replaces)
    await write_backup(place.folder / PENDING, place, streams, clock, key)


def streams_at(server: EmbeddedServer | ExternalServer, seeds: AccountSeeds) -> CentreServer:
    """Where a centre's streams are, reached by way of this server."""
    return CentreServer(server.url, {RELAY: seeds.relay, SPACE: seeds.space})


def end_membership(place: DataDir) -> None:
    """Have a data directory run alone once its copy is written; again is harmless.

    Raises OSError.
    """
    aside, folder = place.folder / OF_MEMBER, place.node(NodePath())
    copying = kept_copying(place.folder)
    if copying is not None and copying.alone:
        make_folder(aside)
        keep_copying(aside, copying)
    _listen_alone(place)
    routes = [(it.name, place.folder) for it in place.folder.glob(f"{ROUTES}*")]
    moved = ((MEMBER_FILE, place.folder), (MEMBERSHIP_FILE, place.folder), *routes, (STORE, folder))
    # First what makes it a member's, last what says of which kind the store is.
    for name, within in (*moved, (MARK_FILE, folder)):
        _put_aside(within / name, aside / name)


def ended_membership(folder: Path) -> MemberSettings | None:
    """The member that ran in a data directory, if all members ended for it to go on there alone.

    None, too, where the others were lost for good: whether they run is not known.
    """
    aside = folder / OF_MEMBER
    try:
        copying = kept_copying(aside)
        return kept_member(aside) if copying is not None and copying.alone else None
    except (CopyingUnusable, MemberUnusable):
        return None


def _listen_alone(place: DataDir) -> None:
    """Have a centre say no more that it listens where its other members did."""
    member, listens = kept_member(place.folder), kept_listen_settings(place.folder)
    if member is not None and member.listens and listens is not None:
        alone = replace(listens, urls=member.listens, of_members=False)
        keep_listen_settings(place.folder, alone)


def end_broken_change(place: DataDir) -> None:
    """Go on with what a loss of power interrupted, before anything is started; raises OSError."""
    if (place.folder / OF_MEMBER / MEMBER_FILE).exists() and (place.folder / PENDING).exists():
        end_membership(place)


def _put_aside(source: Path, target: Path) -> None:
    if not source.exists():
        return
    make_folder(target.parent)
    if target.exists():
        remedy = f"move {target.parent} elsewhere: a former change left it"
        raise CopyingUnusable(target, "it is there already", remedy)
    source.rename(target)
    sync_folder(source.parent)
    sync_folder(target.parent)
