"""The members of nodes that run several times, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafcast.show.durations import span_text
from leafcast.show.layout import Group, Table, Text, View

NONE_HAS = "No node has several members."
_STYLES = {
    "active": "green",
    "behind": "yellow",
    **dict.fromkeys(("silent", "down", "full", "stuck"), "red"),
}


def members_view(form: Mapping[str, Any], _now_ms: int) -> View:
    """A row a member, of all nodes that have several."""
    table = Table()
    for title in ("NODE", "MEMBER", "ROLE", "SINCE", "SERVER"):
        table.add_column(title, no_wrap=True)
    table.add_column("LAG", justify="right", no_wrap=True)
    nodes = form["nodes"]
    listed = [(node["path"], member) for node in nodes for member in node["members"] or ()]
    for path, member in listed:
        is_active = member["role"] == "active"
        table.add_row(
            path,
            member["name"],
            Text(member["role"], style=_STYLES.get(member["role"], "")),
            span_text(member["seconds"]) if is_active else "",
            Text(member["server"], style=_STYLES.get(member["server"], "")),
            str(member["lag"]),
        )
    changes = {(path, it["change"]): None for path, it in listed if it.get("change")}
    changing = [Text(f"  {path}: {change}") for path, change in changes]
    silent = [node["path"] for node in nodes if node["members"] is None and not node["is_edge"]]
    said = [Text(f"  {path} does not answer: who is active there is not known") for path in silent]
    none = [Text(_none_active(form["silentSeconds"]))] if "silentSeconds" in form else []
    return Group(*none, table if listed else Text(NONE_HAS), *changing, *said)


def _none_active(seconds: Any) -> str:
    since = f" since {seconds:.0f} s" if isinstance(seconds, (int, float)) else ""
    return (
        f"No member of the centre is active{since}; accepted: nothing. Two of them have to run and "
        "reach each other: see who is silent, and whose server is down."
    )
