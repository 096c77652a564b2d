"""The program: where concrete things meet. From Python: `async with leafcast.connect() as tree:`.

Its names are those of `leafcast.client`, which says what they promise. They are loaded when one of
them is first asked for: whoever runs a command needs none of them.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from leafcast.client import (
        Applied,
        BadAnswer,
        BadManifests,
        CallFailed,
        Cause,
        ChangePlan,
        ChangeTrace,
        Check,
        CombinedRows,
        CopyChange,
        CopyStop,
        DataDirUnusable,
        DestinationOutcome,
        Difference,
        LabelSelector,
        NotApplied,
        NotFound,
        NotRunning,
        ObjectKey,
        PlacementCounts,
        Placing,
        RemovalsUnconfirmed,
        SpaceError,
        TimeUp,
        TraceStep,
        Tree,
        UnknownKind,
        Unreached,
        Upsynced,
        Watched,
        connect,
    )

__all__ = [
    "Applied",
    "BadAnswer",
    "BadManifests",
    "CallFailed",
    "Cause",
    "ChangePlan",
    "ChangeTrace",
    "Check",
    "CombinedRows",
    "CopyChange",
    "CopyStop",
    "DataDirUnusable",
    "DestinationOutcome",
    "Difference",
    "LabelSelector",
    "NotApplied",
    "NotFound",
    "NotRunning",
    "ObjectKey",
    "PlacementCounts",
    "Placing",
    "RemovalsUnconfirmed",
    "SpaceError",
    "TimeUp",
    "TraceStep",
    "Tree",
    "UnknownKind",
    "Unreached",
    "Upsynced",
    "Watched",
    "connect",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("leafcast.client"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
