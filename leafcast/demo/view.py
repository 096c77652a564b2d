"""What a person sees of a demo: the tree, each tier's counts, each step's time, each placement.

Everything fits 80 columns, and the rows of a terminal: sites of a wide tree are told in one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from leafcast.demo.progress import DemoProgress, has_all, seconds_text
from leafcast.local.views import NodeRow, PlacementView, TreeView
from leafcast.show.layout import guided
from schemas.values.wording import many

BAR_CELLS = 12
PLACEMENTS_MAX = 4
EXCEPTIONS_SHOWN_MAX = 3
TREE_ROWS_MIN = 3
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINS_PER_SECOND = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: the tree at a time (monotonic seconds), and the lines below the tables."""

    view: TreeView
    progress: DemoProgress
    now: float
    footer: tuple[RenderableType, ...] = ()


def draw(frame: Frame, console: Console) -> RenderableType:
    """The whole picture, no higher than the console."""
    below = Group(
        Text(),
        _side_by_side(_tiers(frame.view, frame.progress.shape.nodes), _steps(frame)),
        Text(),
        *_placements(frame.view.placements),
        *_footer(frame),
    )
    title = _title(frame)
    used = sum(len(console.render_lines(part, pad=False)) for part in (title, below))
    rows = max(console.height - used - 2, TREE_ROWS_MIN)
    return Group(title, _tree_table(frame.view.nodes, rows), below)


def summary_table(document: Mapping[str, Any]) -> Table:
    """The result, as the demo says it in JSON, for people."""
    seconds = document["seconds"]
    table = _table()
    for title, value in (
        ("destinations", str(document["destinations"])),
        ("synced", str(document["synced"])),
        ("healthy", str(document["healthy"])),
        ("centre's mail", str(document["mail_written_by_centre"])),
        ("tree up", seconds_text(seconds["tree_up"])),
        ("-> synced", seconds_text(seconds["apply_to_all_synced"])),
        ("-> healthy", seconds_text(seconds["apply_to_all_healthy"])),
    ):
        table.add_column(title, value, justify="right", no_wrap=True)
    table.add_row(*(column.footer for column in table.columns))
    return table


def _tree_table(nodes: Sequence[NodeRow], rows_max: int) -> Table:
    """The tree with a row a node; with more rows than there is room for, sites become counts."""
    table = _table()
    table.add_column("node", no_wrap=True, ratio=1)
    table.add_column("role", no_wrap=True)
    table.add_column("link", no_wrap=True)
    for title in ("mail out", "content", "applied"):
        table.add_column(title, justify="right", no_wrap=True)
    rows = list(_tree_rows(nodes, whole=True))
    if len(rows) > rows_max:
        rows = list(_tree_rows(nodes, whole=False))
    if len(rows) > rows_max:
        more = len(rows) - rows_max + 1
        rows = [*rows[: rows_max - 1], (f"… and {more} lines more",)]
    for row in rows:
        table.add_row(*row)
    return table


def _title(frame: Frame) -> Text:
    shape = frame.progress.shape
    said = f"{shape.nodes} nats-servers: a centre, {many(shape.regions, 'region')}"
    if shape.depth > 3:
        said += f", {many(shape.regions * (shape.depth - 3), 'relay')} below"
    said += f", {many(shape.destinations, 'site')}"
    return Text.assemble(("Leafcast", "bold green"), "  ", (said, "dim"), overflow="ellipsis")


def _tree_rows(nodes: Sequence[NodeRow], *, whole: bool) -> Iterator[tuple[RenderableType, ...]]:
    rows: dict[str, list[NodeRow]] = {}
    edges: dict[str, list[NodeRow]] = {}
    for node in nodes:
        if whole or node.role != "edge":
            rows[node.path] = [node]
        else:
            edges.setdefault(node.path.rpartition("/")[0], []).append(node)
    for above, found in edges.items():
        ends = dict.fromkeys((_name(found[0]), _name(found[-1])))
        rows[f"{above}/{' … '.join(ends)}"] = found
    for path, label in guided(rows):
        node, *others = rows[path]
        yield _folded_row(label, rows[path]) if others else _node_row(node, label)


def _node_row(node: NodeRow, label: str) -> tuple[RenderableType, ...]:
    edge = node.role == "edge"
    return (
        Text(label, overflow="ellipsis"),
        Text(node.role, style="dim"),
        Text("up", style="green") if node.up else Text("joining", style="yellow"),
        "" if edge else str(node.mail_written),
        str(node.blobs_kept),
        str(node.objects_applied) if edge else "",
    )


def _folded_row(label: str, edges: Sequence[NodeRow]) -> tuple[RenderableType, ...]:
    up = sum(node.up for node in edges)
    return (
        Text(label, overflow="ellipsis"),
        Text("edges", style="dim"),
        Text(f"{up}/{len(edges)}", style="green" if up == len(edges) else "yellow"),
        "",
        str(sum(node.blobs_kept for node in edges)),
        str(sum(node.objects_applied for node in edges)),
    )


def _name(node: NodeRow) -> str:
    return node.path.rpartition("/")[2]


def _tiers(view: TreeView, total: int) -> Table:
    """Counts of each tier: nodes in session, mail written, objects applied."""
    tiers: dict[int, list[NodeRow]] = {}
    for node in view.nodes:
        tiers.setdefault(0 if node.path == "/" else node.path.count("/"), []).append(node)
    table = _table()
    table.add_column("tier", no_wrap=True)
    for title in ("in session", "mail out", "applied"):
        table.add_column(title, justify="right", no_wrap=True)
    for depth, nodes in sorted(tiers.items()):
        edges = nodes[0].role == "edge"
        up = sum(node.up for node in nodes)
        table.add_row(
            {"centre": "centre", "edge": "sites"}.get(nodes[0].role, "")
            or ("regions" if depth == 1 else f"relays {depth}"),
            Text(f"{up}/{len(nodes)}", style="green" if up == len(nodes) else "yellow"),
            "" if edges else str(sum(node.mail_written for node in nodes)),
            str(sum(node.objects_applied for node in nodes)) if edges else "",
        )
    up = sum(node.up for node in view.nodes)
    table.add_row(*(Text(cell, style="dim") for cell in ("in all", f"{up}/{total}", "", "")))
    return table


def _steps(frame: Frame) -> Table:
    progress = frame.progress
    table = _table()
    table.add_column("step", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    steps = (
        ("tree up", progress.began, progress.up),
        ("apply -> all synced", progress.applied, progress.synced),
        ("apply -> all healthy", progress.applied, progress.healthy),
    )
    for name, start, end in steps:
        mark, style = _mark(start, end, frame.now)
        stopped = end if end is not None else frame.now
        spent = None if start is None else stopped - start
        table.add_row(Text(f"{mark} {name}", style=style), Text(seconds_text(spent), style=style))
    return table


def _mark(start: float | None, end: float | None, now: float) -> tuple[str, str]:
    if start is None:
        return "·", "dim"
    if end is None:
        return _SPINNER[int(now * _SPINS_PER_SECOND) % len(_SPINNER)], "yellow"
    return "✓", "green"


def _placements(placements: Sequence[PlacementView]) -> Iterator[RenderableType]:
    table = _table()
    table.add_column("placement", no_wrap=True, max_width=24)
    table.add_column("delivered (synced)", no_wrap=True)
    table.add_column("working (healthy)", no_wrap=True)
    # The least complete ones first, if not all can be shown.
    shown = sorted(placements, key=lambda p: (has_all(p), p.name))[:PLACEMENTS_MAX]
    for placement in shown:
        total = placement.destinations
        table.add_row(
            Text(placement.name, overflow="ellipsis"),
            _bar(placement.synced, total, placement.complete),
            _bar(placement.healthy, total, placement.complete),
        )
    if not placements:
        table.add_row(*(Text(cell, style="dim") for cell in ("none yet", "-", "-")))
    if len(placements) > len(shown):
        table.add_row(Text(f"… and {len(placements) - len(shown)} more", style="dim"), "", "")
    yield table
    said = [line for placement in shown for line in placement.exceptions]
    for line in said[:EXCEPTIONS_SHOWN_MAX]:
        yield Text(f"  {line}", style="red", overflow="ellipsis", no_wrap=True)


def _bar(count: int, total: int, exact: bool) -> Text:  # noqa: FBT001 - a value, not a switch
    """A bar and its figures; `≥` while not all destinations have been told of."""
    if not total:
        return Text("-", style="dim")
    full = BAR_CELLS * count // total
    done = exact and total <= count
    style = "green" if done else "yellow"
    figures = f" {'' if exact else '≥'}{count}/{total}"
    return Text.assemble(("━" * full, style), ("─" * (BAR_CELLS - full), "bright_black"), figures)


def _footer(frame: Frame) -> Iterator[RenderableType]:
    if frame.footer:
        yield Text()
    yield from frame.footer


def _side_by_side(left: RenderableType, right: RenderableType) -> Table:
    table = Table.grid(padding=(0, 4, 0, 0))
    table.add_row(left, right)
    return table


def _table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), header_style="bold cyan")
