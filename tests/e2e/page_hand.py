"""A person's hand at the page of a running tree: does what its views offer, and nothing else."""

import asyncio
import json
from pathlib import Path

from leafcast.ui.acts import TreeActs, act_from, read_act
from leafcast.ui.facts import TreeFacts
from leafcast.ui.kept_session import KeptSession
from leafcast.ui.views import Views
from relay.adapters.clock import SystemClock, SystemDice


def did_at_page(data_dir: Path, name: str, **words: str) -> str:
    """Do an act as the page of this tree offers it now; what became of it."""
    return asyncio.run(_did(data_dir, name, words, is_offered=True))


def said_unasked(data_dir: Path, name: str, **words: str) -> str:
    """What becomes of an act that no view offers."""
    return asyncio.run(_did(data_dir, name, words, is_offered=False))


async def _did(data_dir: Path, name: str, words: dict[str, str], *, is_offered: bool) -> str:
    clock = SystemClock()
    kept = KeptSession(data_dir, clock)
    keeping = asyncio.get_running_loop().create_task(kept.keep())
    try:
        facts = TreeFacts(kept, clock, SystemDice(), _plans_nothing)
        form = read_act(name, words).form
        if is_offered:
            offered = await _offered(Views(facts, clock, may_act=True), words.get("rollout", ""))
            assert form in offered, offered
        return await TreeActs(kept).do(act_from(json.dumps(form).encode()))
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def _offered(views: Views, rollout: str) -> list[object]:
    _, requests = views.named("requests", {})
    found = [row["act"] for row in (await requests())["rows"]]
    if rollout:
        _, flow = views.named("rollout", {"name": rollout})
        found += (await flow())["head"]["acts"]
    return found


async def _plans_nothing(*_: object) -> dict[str, object]:
    raise NotImplementedError
