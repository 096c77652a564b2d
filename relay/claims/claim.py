"""Whether a cluster is this edge's, and a hub this centre's: tables over what its lease says. Pure.

An edge is known by its tree, and by the name that its folder has or a path at which it hangs or
hung: a restart, a move and a new store keep one of these. A centre is known by its tree, and by the
place of its folder: a copy of the folder has another. One of several members is known by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from relay.claims.leases import LEASES_NAMESPACE, Lease

TREE_NOTE = "leafcast.io/claimed-by-tree"
PATH_NOTE = "leafcast.io/claimed-by-path"
EDGE_NOTE = "leafcast.io/claimed-by-edge"
PLACE_NOTE = "leafcast.io/claimed-by-place"
RUN_NOTE = "leafcast.io/claimed-by-run"
HOST_NOTE = "leafcast.io/claimed-by-host"
MEMBERS_NOTE = "leafcast.io/claimed-by-members"
MEMBERS_SHARED_MIN = 2
"""So many of three members in common: no two runs of them are active at once, as one of two decides
nothing."""
TREE_LETTERS_SHOWN = 8
CLUSTER_TAKEN, CLUSTER_CHANGED = "ClusterTaken", "ClusterChanged"


class EdgeVerdict(Enum):
    """What an edge is to do about the claim on its cluster."""

    CREATE = auto()
    KEEP = auto()
    # It is ours, and says something of us that is so no more.
    RENEW = auto()
    TAKE_OVER = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class EdgeIdentity:
    """Who an edge is; `former` are paths at which it hung before."""

    tree: str
    path: str
    # What its folder names it, made once.
    edge: str
    former: tuple[str, ...] = ()

    def notes(self) -> dict[str, str]:
        """What its claim says of it."""
        return {TREE_NOTE: self.tree, PATH_NOTE: self.path, EDGE_NOTE: self.edge}

    def holds(self, lease: Lease) -> bool:
        """Whether a claim is this edge's."""
        notes = lease.notes
        if not self.tree or notes.get(TREE_NOTE) != self.tree:
            return False
        return self.named_by(lease) or notes.get(PATH_NOTE) in (self.path, *self.former)

    def named_by(self, lease: Lease) -> bool:
        """Whether a claim was made with this very folder."""
        return _all_in({TREE_NOTE: self.tree, EDGE_NOTE: self.edge}, lease.notes)


def judge_edge(lease: Lease | None, me: EdgeIdentity, *, take_over: bool) -> EdgeVerdict:
    """What to do about the claim that a cluster has, if it has one."""
    if lease is None:
        return EdgeVerdict.CREATE
    if me.holds(lease):
        notes = me.notes()
        same = {name: lease.notes.get(name) for name in notes} == notes
        return EdgeVerdict.KEEP if same else EdgeVerdict.RENEW
    return EdgeVerdict.TAKE_OVER if take_over else EdgeVerdict.REFUSED


def cluster_changed(noted: str, found: str) -> str:
    """Why a cluster is not the one that the edge noted; "" if it is, or none was."""
    if noted in ("", found):
        return ""
    return (
        f"the cluster changed: it is {found} now (the UID of namespace kube-system), and this edge "
        f"worked on {noted}; nothing is applied or deleted there: name the right --context, or, if "
        "the edge is to go on with this cluster, start it once with --take-over"
    )


def cluster_taken(lease: Lease, cluster: str, tree: str) -> str:
    """That a cluster is another edge's: which one, since when, and what to do."""
    notes = lease.notes
    other = notes.get(TREE_NOTE, "")
    path = notes.get(PATH_NOTE) or lease.holder or "someone who gave no name"
    whose = "of this tree" if other == tree else f"of tree {short_tree(other)}"
    return (
        f"this cluster (UID of kube-system: {cluster}) is already the edge {path} {whose}, since "
        f"{lease.acquired or 'a time that is not said'}; nothing is applied or deleted there: name "
        "another --context, or remove that edge first; if it is gone for good, start this one once "
        f"with --take-over, or delete Lease {lease.name} in namespace {LEASES_NAMESPACE}"
    )


class CentreVerdict(Enum):
    """What a centre is to do about the lease of a hub."""

    TAKE = auto()
    # Another run of this tree may hold it: it is looked at until it is silent for its duration.
    WAIT = auto()
    # It is another tree's, whether that runs or not.
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class CentreIdentity:
    """Who a centre is: its tree, the place of its folder, this run of it, and where it runs.

    `members` names each of several, and `former` places at which the same centre surely ended.
    """

    tree: str
    place: str
    run: str
    host: str
    members: tuple[str, ...] = ()
    former: tuple[str, ...] = ()

    def notes(self) -> dict[str, str]:
        """What its lease says of it."""
        return {
            TREE_NOTE: self.tree,
            PLACE_NOTE: self.place,
            RUN_NOTE: self.run,
            HOST_NOTE: self.host,
            **({MEMBERS_NOTE: " ".join(self.members)} if self.members else {}),
        }

    @property
    def holder(self) -> str:
        """Its name for people."""
        return f"{self.host}_{self.run}"

    def holds(self, lease: Lease) -> bool:
        """Whether a lease is this very run's."""
        return bool(lease.holder) and _all_in(
            {TREE_NOTE: self.tree, RUN_NOTE: self.run}, lease.notes
        )

    def is_place_of(self, lease: Lease) -> bool:
        """Whether a lease is this centre's from an earlier run, which is over: one runs at once.

        Where one member was replaced, or several, the others say that it is the same centre.
        """
        notes = lease.notes
        if not _all_in({TREE_NOTE: self.tree}, notes):
            return False
        shared = set(self.members).intersection(notes.get(MEMBERS_NOTE, "").split())
        is_named = notes.get(PLACE_NOTE) in (self.place, *self.former)
        return is_named or len(shared) >= MEMBERS_SHARED_MIN


def judge_centre(
    lease: Lease | None, me: CentreIdentity, *, silent: bool, take_over: bool
) -> CentreVerdict:
    """What to do about the lease that a hub has; `silent` if it was not renewed while it was due.

    That is known only to who looked for so long by a clock of its own: what the lease says of times
    is by another clock.
    """
    if lease is None or me.is_place_of(lease):
        return CentreVerdict.TAKE
    if lease.notes.get(TREE_NOTE) != me.tree and not take_over:
        return CentreVerdict.REFUSED
    return CentreVerdict.TAKE if silent or not lease.holder else CentreVerdict.WAIT


def hub_taken(lease: Lease, me: CentreIdentity, verdict: CentreVerdict, *, silent: bool) -> str:
    """That a hub is another centre's: whose, where, since when, and what to do."""
    other = lease.notes.get(TREE_NOTE, "")
    host = lease.notes.get(HOST_NOTE) or lease.holder or "a host that is not said"
    since = lease.acquired or "a time that is not said"
    whose = "this tree" if other and other == me.tree else f"tree {short_tree(other)}"
    said = f"it is the hub of another centre, of {whose} (on {host}, since {since})"
    if verdict is CentreVerdict.WAIT:
        return (
            f"{said}; nothing is written there, and this centre takes over once that one renews "
            f"its Lease {lease.name} no more: stop one of them"
        )
    state = "does not run now" if silent or not lease.holder else "may still run"
    return (
        f"{said}, which {state}; nothing is written there: name another API server; if that tree "
        "is gone for good, start this centre once with --take-over, or delete Lease "
        f"{lease.name} in namespace {LEASES_NAMESPACE}, as who may write Leases there can"
    )


def short_tree(tree: str) -> str:
    """A tree's id as people are told it."""
    return tree[:TREE_LETTERS_SHOWN] or "unknown"


def _all_in(wanted: Mapping[str, str], notes: Mapping[str, str]) -> bool:
    return all(value and notes.get(name) == value for name, value in wanted.items())
