"""What `kubectl explain` says of each field of a Rollout."""

from __future__ import annotations

from collections.abc import Mapping

Texts = Mapping[str, str]

_DURATION = "A span such as 90s, 30m or 1h30m, at most 720h"
_WINDOWS = "When destinations may begin; who began goes on when a window closes. Always if empty."
_DEADLINE = (
    "How long a wave may take to be good, from its first step on; its soak and waiting for windows "
    f"are not counted. {_DURATION}."
)

ROLLOUT_TEXTS: Mapping[str, Texts] = {
    "Rollout": {
        "spec": "How the changes of one placement go out.",
        "status": "How far it is. Leafcast writes it, and goes on from it after a restart.",
    },
    "RolloutSpec": {
        "placement": "The placement whose changes go out by waves.",
        "waves": "Whom each wave admits, in order. A destination is of the first that admits it.",
        "success": "When a wave is good.",
        "failures": "How many members of a wave may fail.",
        "deadline": _DEADLINE,
        "onFailure": "What becomes of a wave that failed: pause, and wait for a person; or abort, "
        "and give all who have it the former content.",
        "offline": "How many members of a wave may be unreachable when it passes.",
        "windows": _WINDOWS,
        "history": "How many former contents are kept, to be gone back to.",
    },
    "RolledPlacement": {
        "kind": "EdgePlacement or BindingPolicy.",
        "name": "The name of the placement.",
    },
    "Wave": {
        "name": "The name of the wave, as commands take it.",
        "selector": "Admits the SyncTargets whose labels it matches.",
        "locationSelector": "Admits the SyncTargets at Locations whose labels it matches.",
        "percent": "Admits so many percent of them, always the same ones first: about so many, as "
        "each is drawn by its own name.",
        "perGroup": "Makes a wave for each value of a label, in order.",
        "maxConcurrent": "How many begin at a time: a number, or a share such as 25%. The next "
        "begin when these are done.",
        "rate": "How many begin in a minute.",
        "approval": "Whether a person lets the wave begin (before), or lets it end (after).",
        "soak": f"How long it must stay good without a break. {_DURATION}.",
        "deadline": _DEADLINE,
        "windows": _WINDOWS,
        "allowEmpty": "Whether the rollout goes on if the wave admits nobody. Else it waits for a "
        "person, for nobody has tried then what goes out.",
    },
    "PerGroup": {"label": "The key of a label of SyncTargets."},
    "Rate": {
        "perMinute": "How many begin in each minute.",
        "base": "How many begin in the first minute.",
        "factor": "How many times as many begin in each minute as in the one before.",
        "max": "How many begin in a minute at most.",
    },
    "RolloutWindow": {
        "cron": "When it opens: minute, hour, day of month, month, day of week.",
        "duration": f"How long it is open. {_DURATION}.",
        "zone": "A time zone such as Europe/Berlin; or destination: the one that the label zone of "
        "the SyncTarget names.",
    },
    "Success": {
        "of": "What counts: members that are healthy, or that are synced.",
        "minimum": "Which share of the reachable members must be so.",
    },
    "Failures": {
        "maximum": "How many may fail: a number, or a share of the members.",
        "atLeast": "From how many failures on they count.",
    },
    "Offline": {"maximum": "Which share of the members."},
    "RolloutStatus": {
        "observedGeneration": "The metadata.generation that this status speaks of.",
        "revision": "The number of the content that goes out, or went out last.",
        "overRevision": "The number of the content that it replaces.",
        "phase": "What it does now.",
        "paused": "Whether a person, or a failure, made it stand still.",
        "wave": "The number of the wave that is under way, from 1.",
        "waveName": "The name of that wave.",
        "waves": "The waves of this revision.",
        "history": "The contents that the placement had, the newest last.",
        "pins": "Where a former content is kept.",
        "freezes": "Where nothing new comes.",
        "layers": "Who has which content: the newest layer first, the last is everyone's.",
        "target": "The address of the content that is to go out of what the space wants.",
        "targetSize": "How long its list of objects is, in bytes.",
        "wish": "The address of what the space wants in fact, if some of it is rejected.",
        "wishSize": "How long its list of objects is, in bytes.",
        "rejected": "Which objects stay as they were, as a revision was aborted or undone.",
        "placement": "The placement that all of this is of.",
        "salt": "What the shares are drawn with.",
        "waitingFor": "What else keeps its newest content from going out.",
        "ungrouped": "How many values of labels found no wave of their own.",
        "complete": "Whether the counts are exact; if not, each reads 'at least'.",
        "late": "How many members fail now of what was rolled out to its end.",
        "request": "What became of the last command.",
        "conditions": "RolledOut, Ready: the newest content is wherever it is meant to be. "
        "Reconciling: it goes on by itself. Stalled: it waits for a person. Others are there while "
        "something is wrong.",
        "message": "What it waits for.",
        "next": "The command to run, if it waits for a person.",
    },
    "WaveStatus": {
        "name": "The name of the wave.",
        "gate": "Whom it admits, in words.",
        "phase": "What becomes of it now.",
        "members": "How many destinations it admitted, without those that never joined.",
        "healthy": "How many of them work with the content.",
        "synced": "How many of them hold it.",
        "failing": "How many of them fail.",
        "waiting": "How many of them wait for a window, or for another placement.",
        "unreachable": "How many of them are not heard of.",
        "steps": "How it is opened.",
        "step": "How many of the steps are done.",
        "soaked": "How many seconds it was good without a break.",
        "lasted": "How many seconds of its deadline are gone.",
        "since": "When its first step was.",
        "approvedBefore": "Whether a person let it begin.",
        "approvedAfter": "Whether a person let it end.",
        "reason": "Why it failed, or why nobody tries what it lets out.",
        "definition": "The wave as it was when the revision began.",
    },
    "RolloutStep": {
        "below": "How many of 10000 are admitted.",
        "after": "How many seconds after the wave's first step at the earliest.",
    },
    "Revision": {
        "number": "Its number.",
        "manifest": "The address of its list of objects.",
        "size": "How long that is, in bytes.",
        "time": "When it began.",
        "user": "Who changed it last.",
        "cause": "The annotation kubernetes.io/change-cause of the placement.",
        "outcome": "What became of it; empty while it goes out.",
    },
    "Layer": {
        "revision": "The number of its content.",
        "manifest": "The address of its list of objects; empty if it has none.",
        "size": "How long that is, in bytes.",
        "gates": "Who gets it, the first gate that admits counts.",
    },
    "LayerGate": {
        "name": "Of which revision and wave it is.",
        "below": "How many of 10000 it admits.",
        "salt": "What these are drawn with.",
        "over": "Whether the selector is over Locations or SyncTargets.",
        "selector": "Whose labels it admits; all if absent.",
        "windows": "When destinations may begin.",
    },
    "StatusWindow": {
        "cron": "When it opens.",
        "duration": "For how many seconds.",
        "zone": "In which time zone; empty for the destination's own.",
    },
    "Pin": {
        "path": "At and below which place.",
        "revision": "Which revision is kept there.",
    },
    "Freeze": {
        "path": "At and below which place.",
        "layers": "The layers as they were.",
    },
    "RejectedObjects": {
        "reason": "Whether the revision was aborted or undone.",
        "revision": "Which revision; 0 if that is not known any more.",
        "since": "Since when.",
        "objects": "How many objects; none until they are counted.",
        "names": "Some of them, by kind and name.",
    },
    "RequestStatus": {
        "id": "Which request.",
        "action": "What was asked.",
        "outcome": "Whether it was done.",
        "message": "Why not, or what follows.",
    },
}
