"""The subject grammar: the only place where a subject is made or taken apart.

Every tail is one token, and reserved tokens start with an underscore, which no node name can:
so the streams of different tiers never overlap (protocol.md, "Subjects and streams").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

TAILS = ("_mail", "_blob", "_stat", "_up", "_own", "_done", "_answer")
NODE_SELF = "self"
PROGRESS_KEY = "_progress"
CURSOR_KEY = "_cursor"
TAKEN_KEY = "_taken"
DONE_LOST_KEY = "_done_lost"
"""Of the note that DONE lost some: it stays until the edge has looked for that in its space."""
FIRST_SESSION_PREFIX = "_session_"
"""Before the name of a child, in its parent's OWN."""
AWAY_PREFIX = "_away_"
"""Before the name of a child, in its parent's OWN."""
HISTORY_PREFIX = "_history_"
"""Before a placement's mail key: the former contents that the centre keeps."""
FORMER_ROLLOUT_PREFIX = "_former_rollout_"
"""Before a placement's mail key: what the centre knows of the Rollout that it had."""
SPACE_PREFIX = "_space_"
"""Before the mail key of a workload description space's identity: how far the centre knew it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a node, taken apart: `lc.<path>.<tail>.<key>`."""

    path: NodePath
    tail: str
    key: str

    def __str__(self) -> str:
        return f"{self.path.prefix}.{self.tail}.{self.key}"


def parse(subject: str) -> Subject:
    """Take a node's subject apart; raises BadIdentity if it is none."""
    tokens = subject.split(".")
    if len(tokens) < 3 or tokens[0] != "lc" or not (tokens[-2] in TAILS or tokens[-2] == "_node"):
        raise BadIdentity("subject of a node", subject, "lc.<path>.<_tail>.<key>")
    return Subject(NodePath(tuple(tokens[1:-2])), tokens[-2], tokens[-1])


def _slots(tail: str) -> Callable[[NodePath, str], str]:
    """Makes the subject `lc.<path>.<tail>.<key>` of a path and a key."""
    return lambda path, key: f"{path.prefix}.{tail}.{key}"


mail, blob, stat, own = _slots("_mail"), _slots("_blob"), _slots("_stat"), _slots("_own")
done, answer = _slots("_done"), _slots("_answer")
copy = _slots("_up")
"""Where the node's copy of an object of its space lies at its parent."""
lease = _slots("_lease")
"""Where the notes of the members of a node lie that say who is active."""
state = _slots("_state")
"""Where something lies that is the node's, and not one of its members'."""


def node_self(path: NodePath) -> str:
    return f"{path.prefix}._node.{NODE_SELF}"


def children_selves(path: NodePath) -> str:
    """What matches `node_self` of each child."""
    return f"{path.prefix}.*._node.{NODE_SELF}"


def children_copies(path: NodePath) -> str:
    """What matches each `copy` of each child."""
    return f"{path.prefix}.*._up.*"


def child_answers(path: NodePath) -> str:
    """The pattern of all that the node's direct children answer."""
    return f"{path.prefix}.*._answer.*"


def deliveries(child: str) -> str:
    """Where the parent's server delivers the child's mail; not kept."""
    return f"lc._d.{child}.m"


def welcome(child: str) -> str:
    """Where the parent answers the child's hello; not kept."""
    return f"lc._d.{child}.welcome"


def ask(child: str, verb: str) -> str:
    return f"lc._d.{child}.ask.{verb}"


def child_mail(path: NodePath) -> str:
    """The filter of one child's part of its parent's MAIL."""
    return mail(path, "*")


def members(path: NodePath) -> str:
    """Where the members of a node are asked what they are."""
    return f"{path.prefix}._members"


def renewals(path: NodePath) -> str:
    """Where the active member of a node says how it renews its lease; not kept."""
    return f"{path.prefix}._renewals"


FENCE_KEY = "_fence"
"""Of what the active member of a node writes into a stream before anything else."""


def fence(path: NodePath, stream: str) -> str:
    """Where the fence of a stream of the node's lies: among its subjects, and in no one's way.

    In STAT, which children write, it holds nobody back: it is written to see whether it is taken.
    """
    prefix = path.prefix
    return {
        "OWN": f"{prefix}._own.{FENCE_KEY}",
        "BLOB": f"{prefix}._blob.{FENCE_KEY}",
        "MAIL": f"{prefix}.{FENCE_KEY}._mail.{FENCE_KEY}",
        "STAT": f"{prefix}.{FENCE_KEY}._stat.{FENCE_KEY}",
        "STATE": state(path, FENCE_KEY),
    }[stream]


STREAMS = ("MAIL", "STAT", "BLOB", "OWN", "DONE")


def stream_subjects(path: NodePath) -> dict[str, tuple[str, ...]]:
    """What each stream at the node captures: its direct children's subjects, and its own."""
    prefix = path.prefix
    return {
        "MAIL": (f"{prefix}.*._mail.*",),
        "STAT": (f"{prefix}.*._stat.*", f"{prefix}.*._node.{NODE_SELF}"),
        "BLOB": (f"{prefix}._blob.*",),
        "OWN": (f"{prefix}._own.*",),
        "DONE": (f"{prefix}._done.*",),
    }


def kept_for_itself(path: NodePath) -> tuple[str, ...]:
    """The streams whose subjects are the node's own, and so follow it to another path."""
    own = f"{path.prefix}._"
    found = stream_subjects(path).items()
    return tuple(name for name, captured in found if captured[0].startswith(own))


# Headers on MAIL and OWN, so that a restarting relay reads headers only.
HEADER_GENERATION = "Lc-Gen"
HEADER_HASH = "Lc-Hash"
HEADER_HAS_BODY = "Lc-Has-Body"
HEADER_TRACE = "Lc-Trace"
HEADER_ORIGIN = "Lc-Origin"
HEADER_HOPS = "Lc-Hops"
# On OWN only: where in the parent's stream the record was read.
HEADER_INCARNATION = "Lc-Incarnation"
HEADER_SEQUENCE = "Lc-Sequence"
