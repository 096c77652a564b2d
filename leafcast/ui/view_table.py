"""Which views there are: the words that each takes, what it shows, how often it is looked at.

`Views` looks, the page's API and its description are made of this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_ROWS = "the rows, each with an `id`, and with `tone`: bad, away, held, busy, good or none"
_PATH = "A node, such as /region-1."
_SEARCH = "Words, each of which has to fit."


@dataclass(frozen=True, slots=True)
class ViewKind:
    """One view; `words` and `shows` say of each what it is."""

    summary: str
    shows: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    # How often it is looked at, in seconds: what costs the tree more, more seldom.
    pause: float = 1.0


VIEWS: Mapping[str, ViewKind] = {
    "placements": ViewKind(
        "All placements, the worst first",
        {
            "rows": _ROWS,
            "lostSpaces": "what of lost spaces waits for a person",
            "backupTrouble": "why backups fail, or nothing",
        },
    ),
    "placement": ViewKind(
        "One placement, and one tier of the nodes below",
        {
            "head": "the placement: counts, what is wrong, what holds it, conditions",
            "at": "the node whose children the rows are",
            "known": "whether that node has the placement",
            "exact": "whether the counts of the rows are exact",
            "rows": _ROWS,
            "next": "the name to say as `after` for the next page, or nothing",
        },
        {
            "name": "The placement, such as epl/shop.",
            "at": _PATH,
            "after": "The name of the last child that was seen.",
            "amiss": "Not empty: only destinations with which not all is well.",
        },
    ),
    "tree": ViewKind(
        "A node and a page of its children, the worst first",
        {
            "node": "the node",
            "rows": _ROWS,
            "count": "how many children there are",
            "skip": "how many come before these",
            "answers": "whether the node answers",
            "held": "what placements hold, at the centre alone",
        },
        {"path": _PATH, "skip": "How many to leave out.", "search": "Part of the names."},
    ),
    "places": ViewKind(
        "The nodes that words fit: parts of a path, labels as env=prod",
        {"rows": _ROWS, "more": "how many more there are"},
        {"search": _SEARCH},
    ),
    "search": ViewKind(
        "The placements, nodes and objects that words fit",
        {
            "placements": _ROWS,
            "places": "nodes, by parts of a path or by labels as env=prod",
            "objects": "objects that placements bring, each with these",
            "more": "how many more there are",
        },
        {"search": _SEARCH},
    ),
    "rollouts": ViewKind("All Rollouts", {"rows": _ROWS}),
    "rollout": ViewKind(
        "One Rollout: its waves in their order, and what happens next",
        {"head": "the Rollout", "waves": "its waves", "history": "its revisions, the newest first"},
        {"name": "The Rollout, or the placement that it steers."},
    ),
    "events": ViewKind(
        "What happened lately, the newest first",
        {"rows": _ROWS, "count": "how many fit"},
        {"search": _SEARCH, "warnings": "Not empty: only warnings."},
    ),
    "requests": ViewKind("What waits for a person", {"rows": _ROWS}, pause=3.0),
    "doctor": ViewKind("What the doctor finds", {"rows": _ROWS}, pause=15.0),
    "copy": ViewKind(
        "One object at an edge: as it is meant, as it is there, and why it differs",
        {
            "tone": "how it is",
            "differs": "the fields that are not as they are meant",
            "meant": "YAML of what is meant; data of Secrets is left out",
            "live": "YAML of what is there; data of Secrets is left out",
            "cut": "whether the two are cut, as they are too long",
            "rules": "what was put in, and by which rule",
            "notes": "what else the centre says of it",
            "unrendered": "why nothing is meant",
            "unread": "why nobody knows what is there",
            "why": "what stops it, by placement",
            "isThere": "whether it is there",
            "isSecret": "whether it is a Secret",
            "described": "how commands name it; empty if they cannot",
        },
        {"at": _PATH, "object": "Such as deployments.apps/shop/web."},
        pause=3.0,
    ),
    "proof": ViewKind(
        "Who signed what a node has, from the root keys to each placement, or to one object",
        {
            "tone": "good if each signature leads to the root keys",
            "headline": "the same in words",
            "threshold": "how many root keys have to sign which keys are in force",
            "generation": "of the message that says which keys are in force",
            "refused": "why that message does not count, or nothing",
            "roots": "the root keys, `good` if they signed that message",
            "keys": "the keys in force that signed some of the rows",
            "object": "the object that it is of, or nothing if it is of placements",
            "isSecret": "whether it is of a Secret: its hash in clear is left out",
            "rows": f"{_ROWS}; of an object with what leads to it in `object`: `manifest`, "
            "`address` (its hash), `source`, `customized`, `sealed`, and `closed` if nobody here "
            "has the key",
            "more": "whether the node may have more placements than these",
            "commands": "the commands that check it elsewhere",
        },
        {
            "at": _PATH,
            "placement": "One placement, such as epl/shop; without it all.",
            "object": "An object of an edge, such as deployments.apps/shop/web; without it none.",
        },
        pause=15.0,
    ),
    "trace": ViewKind(
        "Where the time of a change went, down the tree and back up, by the slowest way",
        {
            "placement": "the placement that changed",
            "path": "the node at the end of the way",
            "tone": "busy while something of it has not come yet",
            "headline": "how long it took, in words",
            "chosen": "why this way",
            "generation": "which change",
            "generations": "the changes that the centre noted",
            "traceId": "its id in traces of OpenTelemetry",
            "clocks": "how the clocks of the nodes go",
            "rows": f"the stages with `from` and `share` in percent of the whole: {_ROWS}",
        },
        {
            "name": "The placement, such as epl/shop.",
            "at": "The node at the end of the way, instead of the slowest.",
            "generation": "The change, instead of the newest.",
        },
        pause=5.0,
    ),
}

NODE_VIEWS: Mapping[str, ViewKind] = {
    "here": ViewKind(
        "How a node below the centre stands, at its own page: what it holds, what that waits for",
        {
            "path": "the node",
            "role": "relay or edge",
            "version": "of Leafcast there",
            "tone": "how the link to its parent is",
            "headline": "the same in words",
            "remedy": "what to do about it, or nothing",
            "sinceMs": "since when it is in session, or is not",
            "neverSince": "whether this run was never in session",
            "flaps": "how often the link was lost within ten minutes, if more than once",
            "startedMs": "when this run began",
            "snapshotMs": "of when the newest is that it knows of all placements, or nothing",
            "notes": "what else to know of the node",
            "holds": "how much it holds, in words",
            "rows": f"what it holds, and what that waits for: {_ROWS}",
            "more": "how many placements more it holds",
            "children": f"its children: {_ROWS}",
            "childrenMore": "how many children more it has",
            "changes": f"how the link was, the newest first: {_ROWS}",
        },
        pause=2.0,
    ),
}
"""What the page of a node below the centre shows, and nothing else."""
