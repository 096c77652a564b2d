"""What the page shows, by name: which words each view takes, and what it looks at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from leafcast.ask.failures import CallFailed
from leafcast.proof_text import has_none
from leafcast.ui import more_rows, rows
from leafcast.ui.copies import copy_form, object_key
from leafcast.ui.described import described
from leafcast.ui.facts import PageFacts
from leafcast.ui.here_rows import here_form
from leafcast.ui.node_facts import OwnFacts
from leafcast.ui.proved import proof_form_of
from leafcast.ui.traced import trace_form
from leafcast.ui.view_table import NODE_VIEWS, VIEWS, ViewKind
from relay.ports import Clock
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

WORD_MAX_CHARACTERS = 1_000
NUMBER_MAX_DIGITS = 15
SEARCHED_ROWS_MAX = 20
"""So many placements a search names."""

Json = dict[str, Any]
ViewWords = Mapping[str, str]
ViewLook = Callable[[ViewWords], Awaitable[Json]]


class NoSuchView(Exception):
    """There is no view of this name; says which there are."""


class BadWord(Exception):
    """A view takes no such word; says which it takes."""


class PageViews:
    """The views of one page, by name: `kinds` says of each what it takes and shows."""

    kinds: Mapping[str, ViewKind]

    def __init__(self, looks: Mapping[str, ViewLook]) -> None:
        self._looks = looks

    def named(self, name: str, words: ViewWords) -> tuple[str, Callable[[], Awaitable[Json]]]:
        """A view's name with its words, and how to look at it once.

        Raises NoSuchView, BadWord.
        """
        if name not in self._looks:
            raise NoSuchView(f"there is no view {name}; there are: {', '.join(self._looks)}")
        taken, look = self.kinds[name].words.keys(), self._looks[name]
        if other := words.keys() - taken:
            said = ", ".join(sorted(taken)) or "none"
            raise BadWord(f"{name} takes no {min(other)}; it takes: {said}")
        if any(len(value) > WORD_MAX_CHARACTERS for value in words.values()):
            raise BadWord(f"a word of {name} is longer than {WORD_MAX_CHARACTERS} characters")

        async def once() -> Json:
            return await look(words)

        return f"{name}?{urlencode(sorted(words.items()))}", once

    async def plan(self, _: str, /) -> Json:
        """What applying manifests would do; raises as facts do."""
        raise NoSuchView("nothing is planned at a node; plan at the centre: leafcast plan -f FILE")


class NodeViews(PageViews):
    """Looks at a node below the centre, which knows of itself alone."""

    kinds = NODE_VIEWS

    def __init__(self, facts: OwnFacts) -> None:
        self._facts = facts
        super().__init__({"here": self._here})

    async def _here(self, _: ViewWords) -> Json:
        return here_form(await self._facts.here())


class Views(PageViews):
    """Looks at facts of a tree, as the page shows them."""

    kinds = VIEWS

    def __init__(self, facts: PageFacts, clock: Clock, *, may_act: bool = False) -> None:
        """With `may_act` a view says what the page may do, too."""
        self._facts, self._clock, self._may_act = facts, clock, may_act
        looks: Mapping[str, ViewLook] = {
            "placements": self._placements,
            "placement": self._placement,
            "tree": self._tree,
            "places": self._places,
            "search": self._search,
            "rollouts": self._rollouts,
            "rollout": self._rollout,
            "events": self._events,
            "requests": self._requests,
            "doctor": self._doctor,
            "copy": self._copy,
            "proof": self._proof,
            "trace": self._trace,
        }
        super().__init__(looks)

    async def _placements(self, _: ViewWords) -> Json:
        return rows.placements_form(await self._facts.placements())

    async def _placement(self, words: ViewWords) -> Json:
        at, name = _path(words.get("at", "/")), words.get("name", "")
        if not name:
            raise CallFailed("status", "Invalid", "name: it is missing", "such as epl/shop")
        form = await self._facts.placement(name)
        amiss = bool(words.get("amiss"))
        tier = await self._facts.tier(form["name"], at, words.get("after", ""), amiss=amiss)
        return {
            "head": rows.placement_head(form),
            "at": str(at),
            "known": tier["known"],
            "exact": tier["complete"],
            "rows": rows.tier_rows(tier["rows"]),
            "next": tier["next"],
        }

    async def _tree(self, words: ViewWords) -> Json:
        skip, at = _number(words, "skip", "level"), _path(words.get("path", "/"))
        found = await self._facts.level(at, skip, words.get("search", ""))
        return rows.level_rows(found, self._clock.now().wall_ms)

    async def _places(self, words: ViewWords) -> Json:
        found = await self._facts.places(words.get("search", ""))
        return {"rows": [{"id": it["path"], **it} for it in found["places"]], "more": found["more"]}

    async def _search(self, words: ViewWords) -> Json:
        search = words.get("search", "").strip()
        if not search:
            return {"placements": [], "places": [], "objects": [], "more": 0}
        listed = rows.placements_form(await self._facts.placements())["rows"]
        lower = search.lower().split()
        named = [row for row in listed if all(word in row["id"].lower() for word in lower)]
        places = await self._facts.places(search)
        objects = await self._facts.carried(search)
        return {
            "placements": named[:SEARCHED_ROWS_MAX],
            "places": [{"id": it["path"], **it} for it in places["places"]],
            "objects": [rows.carried_row(it) for it in objects["objects"]],
            "more": max(0, len(named) - SEARCHED_ROWS_MAX) + places["more"] + objects["more"],
        }

    async def _rollouts(self, _: ViewWords) -> Json:
        return {"rows": [more_rows.rollout_row(obj) for obj in await self._facts.rollouts()]}

    async def _rollout(self, words: ViewWords) -> Json:
        flow = more_rows.rollout_flow(await self._facts.rollout(words.get("name", "")))
        return flow if self._may_act else {**flow, "head": {**flow["head"], "acts": []}}

    async def _events(self, words: ViewWords) -> Json:
        said = await self._facts.events()
        return more_rows.event_rows(
            said, words.get("search", ""), warnings=bool(words.get("warnings"))
        )

    async def _requests(self, _: ViewWords) -> Json:
        found = more_rows.request_rows(*await self._facts.waiting())
        return {"rows": found if self._may_act else [{**row, "act": None} for row in found]}

    async def _doctor(self, _: ViewWords) -> Json:
        return {"rows": more_rows.check_rows(await self._facts.doctor())}

    async def _copy(self, words: ViewWords) -> Json:
        at, key = _path(words.get("at", "/")), _object("render", words.get("object", ""))
        form = copy_form(key, await self._facts.copy(at, key))
        return {**form, "described": described(key)}

    async def _proof(self, words: ViewWords) -> Json:
        at, placement = _path(words.get("at", "/")), words.get("placement", "")
        key = _object("ask", words["object"]) if words.get("object") else None
        found = await self._facts.proof(at, placement, key)
        if placement and key is None and not found.records:
            # Nothing was checked: as a proof it would look good.
            raise CallFailed("ask", "NotFound", *has_none(at, placement))
        return proof_form_of(found, rows.ROWS_MAX)

    async def _trace(self, words: ViewWords) -> Json:
        at = _path(words["at"]) if words.get("at") else None
        generation = _number(words, "generation", "trace")
        return trace_form(await self._facts.trace(words.get("name", ""), generation, at))

    async def plan(self, text: str, /) -> Json:
        return more_rows.plan_form(await self._facts.plan(text))


def _number(words: ViewWords, word: str, verb: str) -> int:
    said = words.get(word) or "0"
    if not (said.isascii() and said.isdecimal()) or len(said) > NUMBER_MAX_DIGITS:
        raise CallFailed(verb, "Invalid", f'{word}: "{said}" is no number', "leave it out")
    return int(said)


def _object(verb: str, said: str) -> ObjectKey:
    key = object_key(said)
    if key is None:
        remedy = "name it as deployments.apps/shop/web"
        raise CallFailed(verb, "Invalid", f'object: "{said}" names none', remedy)
    return key


def _path(said: str) -> NodePath:
    try:
        return NodePath.parse(said)
    except BadIdentity as error:
        raise CallFailed(
            "level", "Invalid", str(error), "name a node as /region-1/site-1"
        ) from error
