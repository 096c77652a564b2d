"""What a loss of power would cost each node now, as its nats-server says."""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.doctor.findings import Check, DoctorFacts, NodeFacts
from leafcast.show.durations import span_text
from schemas.values.wording import some_of

GROUP, NAMED_MAX = "Power", 3


def power_checks(facts: DoctorFacts) -> Iterator[Check]:
    """A line for those that lose nothing, and one for those that have again what they lose.

    A failure for a centre that loses what it acknowledged; nothing of nodes that do not say.
    """
    known = [node for node in facts.nodes if node.sync_seconds is not None]
    # Nobody above a centre has what it loses.
    durable = [node for node in known if node.meant_durable or node.path == "/"]
    wrong = [node for node in durable if node.sync_seconds]
    fine = [node for node in known if node not in wrong]
    if kept := [node.path for node in fine if not node.sync_seconds]:
        where = some_of(kept, NAMED_MAX)
        yield Check(GROUP, "ok", f"a loss of power would cost nothing acknowledged at {where}")
    if behind := [node for node in fine if node.sync_seconds]:
        most = span_text(max(node.sync_seconds or 0 for node in behind))
        where = some_of([node.path for node in behind], NAMED_MAX)
        said = f"a loss of power would cost up to {most} at {where}, had again from above"
        yield Check(GROUP, "ok", said)
    yield from map(_unsynced, wrong)


def _unsynced(node: NodeFacts) -> Check:
    lost = span_text(node.sync_seconds or 0)
    centre = node.path == "/"
    said = f"a loss of power would cost {node.path} up to {lost} of what it acknowledged"
    above = "nobody has that again" if centre else "its parent has that still, for all that"
    return Check(
        GROUP,
        "failure" if centre else "warning",
        said,
        f"its nats-server does not write at once, though it should (durability: disk); {above}",
        "stop that nats-server and start it again: its configuration file says so by now",
        node.path,
    )
