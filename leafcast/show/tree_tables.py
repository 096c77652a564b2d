"""The tree, and what became of placements, as tables that fit 80 columns at a terminal.

They draw the JSON that a daemon answers (leafcast.daemon.tree_facts). Times are milliseconds since
1970.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from leafcast.show.durations import span_text
from leafcast.show.faults import FaultGroup, faults, samples_of
from leafcast.show.holds import NEXT, going_out, held_lines, hold_lines, hold_text
from leafcast.show.layout import Group, Table, Text, View, guided
from leafcast.show.placement_order import badness, worst_first
from leafcast.show.traces import trace_lines
from schemas.reports.states import AT_WORK, IN_MAINTENANCE, NEVER_JOINED
from schemas.values.wording import namespace_first, some_of

Form = Mapping[str, Any]

UNREACHABLE_LINES_MAX = 10
ABSENT_NAMED_MAX = 5
NAME_WIDTH_MAX = 32
_STATE_STYLES = {
    "up": "green",
    "stopped": "yellow",
    "unreachable": "red",
    "revoked": "red",
    "connecting": "yellow",
    "catching up": "yellow",
    "stale": "yellow",
    NEVER_JOINED: "dim",
    "unknown": "dim",
}
_DELIVERED_STYLES = {
    "synced": "green",
    "failing": "red",
    "unreachable": "red",
    NEVER_JOINED: "dim",
}
_WORKING_STYLES = {"healthy": "green", "degraded": "red"}
_WORST_STATES = (
    "failing",
    "frozen",
    "unreachable",
    "pending",
    "waiting",
    "leaving",
    NEVER_JOINED,
    "synced",
)
_WIDE_STATES = ("pending", "waiting", "failing", "frozen", "leaving", NEVER_JOINED)
_WORST_HEALTH = ("degraded", "unknown", "progressing", NEVER_JOINED, "healthy")


def tree_view(form: Form, now_ms: int, *, wide: bool = False) -> View:
    """The tree with a row a node, then who cannot be reached since when."""
    nodes: Sequence[Form] = form["nodes"]
    table = _table("node", "state")
    for title in ("lag", "delivered", "working", "objects"):
        table.add_column(title.upper(), justify="right", no_wrap=True)
    for title in ("role", "path") if wide else ():
        table.add_column(title.upper(), no_wrap=True)
    for node, label in _guided(nodes):
        edge = node["role"] == "edge"
        table.add_row(
            Text(label, overflow="ellipsis"),
            _state(node, now_ms),
            "" if node["path"] == "/" else str(node["lag"]),
            _share(node, node["synced"]),
            _share(node, node["healthy"]),
            str(node["objects_applied"]) if edge and node["objects_applied"] is not None else "",
            *([node["role"], node["path"]] if wide else []),
        )
    held = [*_held(held_lines(form.get("held", ()), now_ms))]
    return Group(table, *_silent(nodes, now_ms), *([Text(), *held] if held else []))


def placements_view(
    placements: Sequence[Form],
    now_ms: int,
    lost_spaces: Mapping[str, str] = MappingProxyType({}),
    *,
    wide: bool = False,
    backup_trouble: str = "",
) -> View:
    """A row a placement, the worst first; then lost spaces, and why backups fail."""
    shown = _placements(placements, now_ms, wide=wide)
    if not lost_spaces and not backup_trouble:
        return shown
    parts: list[View] = [shown, Text()] if placements else []
    return Group(*parts, *centre_troubles(lost_spaces, backup_trouble))


def centre_troubles(lost_spaces: Mapping[str, str], backup_trouble: str) -> Iterator[Text]:
    """What is wrong at the centre itself: why backups fail, and the spaces that are lost."""
    if backup_trouble:
        yield Text(f"Backups fail: {backup_trouble}", "yellow", overflow="fold")
    for space, what in sorted(lost_spaces.items()):
        yield Text.assemble(
            (f"Of a space that is lost: {what}\n", "yellow"),
            "It stays in force. Apply it again, then let the former go:\n",
            f"leafcast accept --space {space}",
            overflow="fold",
        )


def _placements(placements: Sequence[Form], now_ms: int, *, wide: bool) -> View:
    if not placements:
        return Text("No placements. Apply some: leafcast apply -f FILE")
    table = _table("placement", "objects", "delivered", "working", "unreachable")
    for state in _WIDE_STATES if wide else ():
        table.add_column(state.upper(), justify="right", no_wrap=True)
    table.add_column("WORST")
    for form in worst_first(placements):
        table.add_row(
            Text(form["name"], overflow="ellipsis"),
            str(form["selected"]),
            _delivered(form),
            _working(form),
            _unreachable(form, now_ms),
            *([str(form["states"].get(state, 0)) for state in _WIDE_STATES] if wide else []),
            _cut(worst_text(form)),
        )
    return table


def placement_view(form: Form, now_ms: int) -> View:
    """One placement: the counts, what is wrong, and each child, node or destination."""
    head = Text.assemble((form["name"], "bold"), "  ", headline(form))
    parts: list[View] = [head]
    parts += [Text(form[why], style="red") for why in ("problem", "lack") if form[why]]
    if form.get("undenatured"):
        parts.append(Text(form["undenatured"], style="yellow"))
    parts += [Text(said, style="yellow") for said in form.get("unreturned", ())]
    parts += _held(hold_lines(form.get("held", ()), now_ms))
    parts.append(Text(f"  objects:   {form['selected']} selected"))
    counted = _counted("delivered", form["states"]), _counted("working", form["health"])
    parts += [Text(f"  {line}") for line in counted if line and not _selects_nothing(form)]
    if form["blocking"]:
        parts.append(Text(f"  waiting for {', '.join(form['blocking'])}", style="yellow"))
    parts += _silent_lines(form["unreachable"], now_ms)
    parts += [Text(f"  {line}", overflow="fold") for line in trace_lines(form, now_ms)]
    if form["exceptions"]:
        parts += [Text(), *_faults(faults(samples_of(form)))]
    if "destinationList" in form:
        parts += [Text(), *_destinations(form, now_ms)]
    elif "nodes" in form:
        parts += [Text(), _nodes(list(_guided(form["nodes"])), now_ms), *_unasked(form)]
    elif form["children"]:
        children = sorted(form["children"], key=badness, reverse=True)
        parts += [Text(), _nodes([(child, child["path"]) for child in children], now_ms)]
    return Group(*parts)


def _destinations(form: Form, now_ms: int) -> Iterator[View]:
    """A row a destination, the worst first."""
    # Without a rollout nobody is in a wave.
    waves = any(item.get("wave") for item in form["destinationList"])
    table = _table("destination", *(["wave"] if waves else []), "delivered", "working")
    table.add_column("WHAT IS WRONG")
    for item in sorted(form["destinationList"], key=_destination_rank):
        wrong = ": ".join(filter(None, (namespace_first(item["object"]), item["reason"])))
        if item["silent_since_ms"] is not None:
            word = "stopped " if item.get("left") else ""
            wrong = f"{word}since {_since_text(item['silent_since_ms'], now_ms)}"
        table.add_row(
            Text(item["path"], overflow="ellipsis"),
            *([str(item.get("wave", ""))] if waves else []),
            Text(item["state"], style=_DELIVERED_STYLES.get(item["state"], "yellow")),
            Text(item["health"], style=_WORKING_STYLES.get(item["health"], "yellow")),
            _cut(wrong),
        )
    yield table
    if form.get("more"):
        yield Text("There are more: raise --limit, or narrow --filter.", style="dim")
    yield from _unasked(form)


def _unasked(form: Form) -> Iterator[View]:
    """Where one would have to look for more."""
    for path in form.get("elsewhere", ()):
        yield Text(f"more below {path}, which does not answer now", style="dim")


def _since_text(since_ms: int, now_ms: int) -> str:
    """`2026-02-01 10:20:30Z (5m10s)`."""
    moment = datetime.fromtimestamp(since_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"{moment} ({span_text((now_ms - since_ms) / 1000)})"


def _destination_rank(item: Form) -> tuple[int, int, str]:
    return (
        _place(_WORST_STATES, item["state"]),
        _place(_WORST_HEALTH, item["health"]),
        str(item["path"]),
    )


def _place(order: Sequence[str], word: str) -> int:
    return order.index(word) if word in order else 0


def headline(form: Form) -> str:
    """To how many a placement is delivered, at how many it works, and what is still to come."""
    whole, absent = form["destinations"], form["never_joined"]
    if _selects_nothing(form):
        return "no object is selected"
    if not whole:
        if absent:
            return f"{_never_joined(absent)}; nothing to deliver yet"
        return "no destination is selected" if form["complete"] else "not reported yet"
    at_least = "" if form["complete"] else "at least "
    synced, healthy = form["states"].get("synced", 0), form["health"].get("healthy", 0)
    said = f"delivered to {at_least}{synced} of {whole}, working at {at_least}{healthy} of {whole}"
    # What is held tells how many lack it.
    going = "" if form.get("held") else going_out(form)
    said += f"; {going}" if going else ""
    said += f"; {_never_joined(absent)}" if absent else ""
    worked_at = form.get("maintained", 0)
    return f"{said}; {worked_at} {IN_MAINTENANCE}" if worked_at else said


def _never_joined(count: int) -> str:
    return f"{count} never joined"


def _selects_nothing(form: Form) -> bool:
    """Whether there is nothing to be delivered: that it is everywhere says nothing."""
    return bool(form.get("lack")) and not form["selected"]


def _counted(what: str, counts: Mapping[str, int]) -> str:
    listed = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()) if count)
    return f"{what + ':':<11}{listed}" if listed else ""


def _faults(found: Sequence[FaultGroup]) -> Iterator[View]:
    table = Table()
    table.add_column(
        "OBJECT",
        # A name in two parts is not found: rather the texts beside it are folded.
        min_width=min(max(len(fault.objects) for fault in found), NAME_WIDTH_MAX),
        max_width=NAME_WIDTH_MAX,
        overflow="fold",
    )
    at_work = all(fault.severity >= AT_WORK for fault in found)
    table.add_column("WHAT IT WAITS FOR" if at_work else "WHAT IS WRONG", overflow="fold")
    table.add_column("AT", justify="right", no_wrap=True)
    table.add_column("FOR EXAMPLE", no_wrap=True, max_width=NAME_WIDTH_MAX, overflow="ellipsis")
    for fault in found:
        style = "yellow" if fault.severity >= AT_WORK else "red"
        table.add_row(
            fault.objects or "-",
            Text(fault.reason, style=style, overflow="fold"),
            str(fault.count),
            fault.first.path,
        )
    yield table
    # Whatever else is wrong, the doctor says what to do.
    remedies = [fault.remedy("") for fault in found if fault.kind.of_place]
    for remedy in dict.fromkeys(remedies):
        yield Text()
        yield Text(f"do: {remedy}", overflow="fold")


def _nodes(rows: Sequence[tuple[Form, str]], now_ms: int) -> Table:
    table = _table("node", "state", "delivered", "working")
    table.add_column("WORST")
    for node, label in rows:
        table.add_row(
            Text(label, overflow="ellipsis"),
            _state(node, now_ms),
            _delivered(node),
            _working(node),
            _cut(worst_text(node)),
        )
    return table


def _guided(nodes: Sequence[Form]) -> Iterator[tuple[Form, str]]:
    """Each node with its name behind the lines of the tree, children after their parents."""
    found = {str(node["path"]): node for node in nodes}
    return ((found[path], label) for path, label in guided(found))


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _state(node: Form, now_ms: int) -> Text:
    state, since = str(node["state"]), node["silent_since_ms"]
    said = state if since is None else f"{state} {span_text((now_ms - since) / 1000)}"
    if (left := node.get("maintenance_until_ms", 0) - now_ms) > 0:
        said += f", maintenance {span_text(left / 1000)}"
    return Text(said, style=_STATE_STYLES.get(state, ""))


def _silent(nodes: Sequence[Form], now_ms: int) -> Iterator[Text]:
    silent = {node["path"]: node for node in nodes if node["silent_since_ms"] is not None}
    found = [node for path, node in silent.items() if not _behind(path, silent)]
    named = [
        {
            "path": node["path"],
            "since_ms": node["silent_since_ms"],
            "state": node["state"],
            "destinations": node["edges"] if node["role"] != "edge" else 0,
        }
        for node in found
    ]
    worked_at = [node for node in nodes if node.get("maintenance_until_ms", 0) > now_ms]
    if named or worked_at or any(node["state"] == NEVER_JOINED for node in nodes):
        yield Text()
    yield from _silent_lines(named, now_ms)
    for node in worked_at[:UNREACHABLE_LINES_MAX]:
        why = f": {node['maintenance_reason']}" if node["maintenance_reason"] else ""
        until = _since_text(node["maintenance_until_ms"], 2 * node["maintenance_until_ms"] - now_ms)
        yield Text(f"  {node['path']} is {IN_MAINTENANCE} until {until}{why}", style="yellow")
    if len(worked_at) > UNREACHABLE_LINES_MAX:
        yield Text(f"  and {len(worked_at) - UNREACHABLE_LINES_MAX} more are", style="yellow")
    if absent := [node["path"] for node in nodes if node["state"] == NEVER_JOINED]:
        yield Text(f"  {_never_joined(len(absent))}: {some_of(absent, ABSENT_NAMED_MAX)}")


def _behind(path: str, silent: Container[str]) -> bool:
    """Whether one of these nodes is above it."""
    above = _above(path)
    return above != "/" and (above in silent or _behind(above, silent))


def _silent_lines(found: Sequence[Form], now_ms: int) -> Iterator[Text]:
    for item in found[:UNREACHABLE_LINES_MAX]:
        when = _since_text(item["since_ms"], now_ms)
        word, count = item.get("state", "unreachable"), item["destinations"]
        behind = f" ({count} destinations)" if count > 1 else ""
        yield Text(f"  {item['path']} is {word} since {when}{behind}", style="red")
    if len(found) > UNREACHABLE_LINES_MAX:
        yield Text(f"  and {len(found) - UNREACHABLE_LINES_MAX} more are", style="red")


def _share(form: Form, count: int) -> Text:
    whole = form["destinations"]
    if not whole or _selects_nothing(form):
        return Text("-", style="dim")
    done = form["complete"] and count == whole and not stands_still(form)
    return Text(_figures(form, count), style="green" if done else "yellow")


def _held(lines: Iterable[str]) -> Iterator[Text]:
    """Lines about what is held; the commands among them are not coloured."""
    for line in lines:
        style = "" if line.startswith(NEXT) else "yellow"
        yield Text(f"  {line}", style=style, overflow="fold")


def stands_still(form: Form) -> bool:
    """Whether what is counted is not all of its newest content."""
    return bool(form.get("lack") or form.get("held")) or form.get("keptBack", 0) != 0


def _delivered(form: Form) -> Text:
    return _share(form, form["states"].get("synced", 0))


def _working(form: Form) -> Text:
    return _share(form, form["health"].get("healthy", 0))


def _figures(form: Form, count: int) -> str:
    return f"{'' if form['complete'] else 'at least '}{count}/{form['destinations']}"


def _unreachable(form: Form, now_ms: int) -> Text:
    count = form["states"].get("unreachable", 0)
    if not count:
        return Text("-", style="dim")
    since = min((item["since_ms"] for item in form["unreachable"]), default=None)
    when = "" if since is None else f" for {span_text((now_ms - since) / 1000)}"
    return Text(f"{count}{when}", style="red")


def worst_text(form: Form) -> str:
    """The worst that is wrong with a placement, or with a node in it, in a few words."""
    if why := form.get("problem") or form.get("lack"):
        return str(why)
    if held := form.get("held"):
        return hold_text(held[0])
    if not form["exceptions"] and going_out(form):
        return going_out(form)
    if not form["exceptions"] and form["never_joined"]:
        return _never_joined(form["never_joined"])
    if not form["exceptions"]:
        return "" if form["destinations"] or not form["complete"] else "selects no destination"
    return faults(samples_of(form))[0].line


def _table(*titles: str) -> Table:
    table = Table()
    for title in titles:
        table.add_column(title.upper(), no_wrap=True, max_width=NAME_WIDTH_MAX, overflow="ellipsis")
    return table


def _cut(text: str) -> Text:
    """On one line, in the room that the other columns leave: only its column may shrink."""
    return Text(text, style="red", no_wrap=True, overflow="ellipsis")
