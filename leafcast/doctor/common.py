"""What the judgements of `leafcast doctor` share: one check a node, and where to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from leafcast.doctor.findings import Check, DoctorFacts, NodeFacts

IN_SESSION = ("up", "catching up", "stale")

NodeJudge = Callable[[NodeFacts], Check | None]


def each(
    group: str,
    nodes: Sequence[NodeFacts],
    judge: NodeJudge,
    fine: Callable[[Sequence[NodeFacts]], str],
) -> Iterator[Check]:
    """What is wrong with each node, and what is well with the others."""
    judged = [(node, judge(node)) for node in nodes]
    yield from (check for _, check in judged if check is not None)
    good = [node for node, check in judged if check is None]
    if good or not nodes:
        yield Check(group, "ok", fine(good))


def revive(facts: DoctorFacts, node: NodeFacts) -> str:
    if node.here:
        return f"see {log(facts, node)}; if it stays so: leafcast down, then leafcast up"
    return (
        f"where {node.path} runs: see its log, whether it runs and reaches its parent's leaf "
        "port; if not, start `leafcast join` there again"
    )


def log(facts: DoctorFacts, node: NodeFacts) -> str:
    return f"{facts.folder}/daemon.log" if node.here else f"the log of {node.path} where it runs"


def behind(path: str, silent: set[str]) -> bool:
    above = path.rpartition("/")[0]
    return bool(above) and (above in silent or behind(above, silent))


def seconds(facts: DoctorFacts, since_ms: int) -> float:
    return (facts.now_ms - since_ms) / 1000


def bytes_text(count: int) -> str:
    """So many bytes, as people read them."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
