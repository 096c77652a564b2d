"""`leafcast label`: labels of objects at the centre are set and taken off, as kubectl does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from leafcast.ask.asked_space import key_form
from leafcast.ask.object_readers import CentreReader
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import Session
from leafcast.changes.forms import LABEL
from leafcast.changes.judged_batch import JudgedBatch, asked_to_judge
from leafcast.changes.removals import Removals
from leafcast.cli.apply.removals import (
    ask_for,
    confirm_removals_option,
    removals_of,
    tell_if_held,
)
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    all_namespaces_option,
    dry_run_option,
    namespace_option,
    refusals,
    refuse,
    selector_option,
)
from leafcast.cli.resource_arguments import (
    BadResourceArguments,
    found_objects,
    read_arguments,
    with_kinds,
)
from leafcast.cli.session_calls import in_session
from relay.space_errors import SpaceError
from relay.space_port import Object
from schemas.objects.objects import DEFAULT_NAMESPACE, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values import names


@dataclass(frozen=True, slots=True)
class LabelRequest:
    """Which objects get which labels; None is one that is taken off."""

    objects: tuple[str, ...]
    labels: dict[str, str | None]
    namespace: str | None = None
    all_namespaces: bool = False
    selector: LabelSelector | None = None
    every: bool = False
    overwrite: bool = False
    confirmed: bool = False
    dry: bool = False


@dataclass(slots=True)
class _Target:
    """An object to be labelled, and what it would be."""

    kind: ResourceKind
    key: ObjectKey
    before: Object
    after: Object = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.kind.title(self.key.name)

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.before["metadata"].get("labels") or {})


@click.command()
@click.argument("words", nargs=-1, metavar="KIND NAME... KEY=VALUE... KEY-...")
@namespace_option
@all_namespaces_option
@selector_option(changes=True)
@click.option("--all", "every", is_flag=True, help="All objects of the kind.")
@click.option("--overwrite", is_flag=True, help="Change labels that have another value.")
@dry_run_option("labelled")
@confirm_removals_option
@data_dir_option
def label(*, words: tuple[str, ...], dry_run: str, data_dir: Path | None, **said: Any) -> None:
    """Set labels of objects at the centre, and take off those written as KEY-.

    leafcast label loc region-1 tier=gold old-

    What takes more than ten copies, and more than a fifth of a placement's destinations or objects,
    off edges is asked for first.
    """
    with refusals():
        objects, labels = read_words(words)
        request = LabelRequest(objects, labels, dry=dry_run != "none", **said)
        missing = in_session(data_dir, lambda session: label_all(session, request))
    if missing:
        raise click.exceptions.Exit(1)


def read_words(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str | None]]:
    """Which words name objects, and which say labels; raises BadResourceArguments."""
    said = [word for word in words if "=" in word or word.endswith("-")]
    objects = tuple(word for word in words if word not in said)
    if not said:
        raise BadResourceArguments(
            "no label is given; write KEY=VALUE to set one, KEY- to take it off"
        )
    labels: dict[str, str | None] = {}
    for word in said:
        key, sets, value = word.partition("=")
        key = key if sets else word.removesuffix("-")
        fault = names.label_key_fault(key) or (names.label_value_fault(value) if sets else None)
        if fault:
            raise BadResourceArguments(f'"{word}": {fault}')
        if key in labels:
            raise BadResourceArguments(f'"{key}" is given twice')
        labels[key] = value if sets else None
    return objects, labels


async def label_all(session: Session, request: LabelRequest) -> int:
    """Label what is asked for and tell it; how many named objects are not there."""
    targets, missing = await _found(session, request)
    _check_overwritten(targets, request)
    changed = [target for target in targets if target.after != target.before]
    if changed and not request.dry:
        removals = await removals_of(session, {it.key: it.after for it in changed})
        ask_for(removals, confirmed=request.confirmed, undone="nothing was labelled")
        await _write(session, changed, request.labels, removals)
    for target in targets:
        verb = "labeled" if target.after != target.before else "not labeled"
        click.echo(f"{target.title} {verb}{' (dry run)' if request.dry else ''}")
    if not targets and not missing:
        click.echo("No resources found", err=True)
    return missing


async def _write(
    session: Session,
    targets: Sequence[_Target],
    labels: Mapping[str, str | None],
    removals: Removals,
) -> None:
    """Have the labels written; raises SpaceError."""
    objects = [key_form(target.key) for target in targets]
    answer = await asked_to_judge(session, LABEL, objects=objects, labels=labels)
    async with aclosing(JudgedBatch(session, answer["batch"])) as batch:
        async for _, outcome in batch.written(removals.confirmed):
            if isinstance(outcome, SpaceError):
                raise outcome
        tell_if_held(batch.warning)


async def _found(session: Session, request: LabelRequest) -> tuple[list[_Target], int]:
    meant = await with_kinds(session, lambda kinds: read_arguments(kinds, request.objects))
    chosen = request.selector is not None or request.every
    if any(one.names for one in meant) == chosen:
        raise BadResourceArguments("name objects, or give -l or --all; one of the two")
    where = "" if request.all_namespaces else request.namespace or DEFAULT_NAMESPACE
    placed = [(one, where) for one in meant]
    found, missing = await found_objects(CentreReader(session), placed, request.selector)
    return [_target(kind, obj, request.labels) for kind, obj in found], missing


def _target(kind: ResourceKind, obj: Object, labels: dict[str, str | None]) -> _Target:
    metadata = obj["metadata"]
    key = kind.key(metadata.get("namespace", ""), metadata["name"])
    target = _Target(kind, key, obj, obj)
    wanted = {**target.labels, **labels}
    kept = {name: value for name, value in wanted.items() if value is not None}
    if kept != target.labels:
        target.after = {**obj, "metadata": {**metadata, "labels": kept}}
    return target


def _check_overwritten(targets: Sequence[_Target], request: LabelRequest) -> None:
    """Refuse to change a value that somebody set, unless that is asked for."""
    faults = [
        f'{target.title}: "{name}" already has a value ({old}), and --overwrite is not given'
        for target in targets
        for name, value in request.labels.items()
        if value is not None and (old := target.labels.get(name)) not in (None, value)
    ]
    if faults and not request.overwrite:
        refuse([*faults, "nothing was labelled"])
