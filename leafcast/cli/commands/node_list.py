"""`leafcast node add -f`: all edges that a CSV file lists, or none; a token each.

Every line is judged before anything is changed, here and by the centre, and all faults are told.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import Session
from leafcast.cli.node_tokens import ADD, TokenOptions, invitation, tell_if_only_here
from leafcast.cli.options.objects import refuse
from leafcast.cli.session_calls import in_session
from relay.atomic_file import atomic_write
from schemas.values import names
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity
from schemas.values.wording import many

ADDED_AT_ONCE, CHECKED_AT_ONCE = 500, 2_000
ADD_SECONDS = 180.0
FAULTS_TOLD_MAX = 50
_FIELD_CHARACTERS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class NodeListLine:
    """A line of the file: an edge to be, and its labels."""

    line: int
    path: str
    labels: Mapping[str, str]

    @property
    def form(self) -> dict[str, Any]:
        return {"path": self.path, "labels": dict(self.labels)}


def add_listed(
    data_dir: Path | None,
    file: Path,
    folder: Path,
    labels: Mapping[str, str],
    options: TokenOptions,
) -> None:
    """Add what the file lists, and write what is handed over into the folder."""
    rows = _read(file, labels)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"--out {folder}: {error.strerror}") from error

    reached = ""

    async def work(session: Session) -> tuple[list[str], int]:
        nonlocal reached
        faults = [
            f"{file}:{row.line}: {fault['message']}; {fault['remedy']}"
            async for row, fault in _faults(session, rows, options)
        ]
        if faults:
            return faults, 0
        again = 0
        for part in _parts(rows, ADDED_AT_ONCE):
            nodes = [row.form for row in part]
            said = await session.call(ADD, seconds=ADD_SECONDS, nodes=nodes, **options.arguments)
            if said["faults"]:  # Someone else changed the tree meanwhile.
                lines = [part[fault["at"]].line for fault in said["faults"]]
                whys = [f"{fault['message']}; {fault['remedy']}" for fault in said["faults"]]
                return [f"{file}:{n}: {why}" for n, why in zip(lines, whys, strict=True)], 0
            for one in said["added"]:
                atomic_write(folder / file_name(one["path"]), invitation(one), durable=False)
                again += bool(one["void"])
                reached = one["url"]
        return [], again

    faults, again = in_session(data_dir, work)
    _refuse_all(file, faults, len(rows))
    _tell(folder, len(rows), again, options)
    tell_if_only_here(reached)


def _tell(folder: Path, rows: int, again: int, options: TokenOptions) -> None:
    """Say what was handed over, and what is to be done with it."""
    click.echo(f"{many(rows, 'node')} may {options.permission}: tokens are in {folder}")
    if again:
        click.echo(f"{many(again, 'token')} made earlier for the same paths: void.")
    click.echo(f"Next, at each: leafcast join {file_name('PATH')}")
    if not options.approved:
        click.echo("Then here: leafcast node approve --all")


async def _faults(session: Session, rows: Sequence[NodeListLine], options: TokenOptions) -> Any:
    """What the centre has against rows, before it changes anything."""
    for part in _parts(rows, CHECKED_AT_ONCE):
        nodes, more = [row.form for row in part], {**options.arguments, "dry_run": True}
        said = await session.call(ADD, seconds=ADD_SECONDS, nodes=nodes, **more)
        for fault in said["faults"]:
            yield part[fault["at"]], fault


def file_name(path: str) -> str:
    """`region-1.store-7.join` of `/region-1/store-7`; no name has a dot in it."""
    return f"{path.strip('/').replace('/', '.')}.join"


def _read(file: Path, labels: Mapping[str, str]) -> list[NodeListLine]:
    """The rows of the file, all well formed; raises ClickException with all that are not."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            header = [title.strip() for title in next(reader, [])]
            faults = list(_header_faults(file, header))
            rows = [] if faults else list(_rows(reader, header, labels))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise click.ClickException(f"{file}: {why}; name a CSV file with a column path") from error
    seen: dict[str, int] = {}
    for row in rows:
        faults += [f"{file}:{row.line}: {why}" for why in _row_faults(row)]
        first = seen.setdefault(row.path, row.line)
        if first != row.line:
            faults.append(f"{file}:{row.line}: {row.path} is in line {first} already")
    if not rows and not faults:
        faults.append(f"{file}: it lists no node; write one a line below the header")
    _refuse_all(file, faults, len(rows))
    return rows


def _header_faults(file: Path, header: Sequence[str]) -> Iterator[str]:
    if "path" not in header:
        yield f"{file}:1: the header has no column path; write path,LABEL,... in the first line"
    for title in {title for title in header if header.count(title) > 1}:
        yield f'{file}:1: column "{title}" is there twice'
    for title in header:
        if title not in ("path", "id") and (fault := names.label_key_fault(title)):
            yield f'{file}:1: column "{title}": {fault}'
    if "id" in header:
        yield f"{file}:1: id is the node's own label; name the column otherwise"


def _rows(reader: Any, header: Sequence[str], labels: Mapping[str, str]) -> Iterator[NodeListLine]:
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        said = dict(zip(header, (cell.strip() for cell in cells), strict=False))
        path = said.pop("path", "")
        own = {key: value for key, value in said.items() if value}
        more = {"": "x"} if len(cells) > len(header) else {}
        yield NodeListLine(reader.line_num, path, {**labels, **own, **more})


def _row_faults(row: NodeListLine) -> Iterator[str]:
    try:
        path = NodePath.parse(row.path)
    except BadIdentity as error:
        yield str(error)
    else:
        if path.is_root:
            yield "'/' is the centre; name a node below it, such as /emea/store-1"
    if "" in row.labels:
        yield "it has more cells than the header has columns"
    for key, value in row.labels.items():
        if key and (fault := names.label_value_fault(value)):
            yield f'label {key} "{value[:_FIELD_CHARACTERS_MAX]}": {fault}'


def _refuse_all(file: Path, faults: Sequence[str], rows: int) -> None:
    """Say all faults, and that nothing was changed; exit code 1."""
    if faults:
        more = len(faults) - FAULTS_TOLD_MAX
        said = [*faults[:FAULTS_TOLD_MAX], *([f"{file}: and {more} more"] if more > 0 else [])]
        end = f"{many(len(faults), 'fault')} in {many(rows, 'line')} of {file}; no node was added"
        refuse([*said, end])


def _parts(rows: Sequence[NodeListLine], size: int) -> Iterator[Sequence[NodeListLine]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def read_labels(text: str) -> dict[str, str]:
    """`k=v,k2=v2` as a mapping; raises UsageError."""
    found: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        fault = names.label_key_fault(key) or names.label_value_fault(value)
        if not equals or fault:
            why = fault or "it has no '='"
            raise click.UsageError(f"--labels: {item!r}: {why}; write key=value")
        found[key] = value
    return found
