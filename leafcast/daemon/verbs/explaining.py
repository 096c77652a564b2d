"""The verb `why`: the first stage at which a copy stops on its way to a destination.

What the centre decides is asked of the parts that decide it, each node on the way of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from controllers.centre import Controllers
from controllers.core.planning.holdings import steered_of
from controllers.core.rollout.culprits import locations_of
from controllers.core.translation.translate import alternatives_of
from controllers.core.workloads.selection import why_never_selected
from leafcast.ask.api import ApiError, verb
from leafcast.ask.client import CentreAsks
from leafcast.centre.centre import Centre, running
from leafcast.daemon.tree_facts import listed, placement_names
from leafcast.daemon.verbs.selection import until_seen
from leafcast.explain.answers import (
    Form,
    child_on_the_way,
    copy_said,
    form_of,
    node_on_the_way,
    samples_said,
    words_said,
)
from leafcast.explain.decisions import invalid, of_holds, of_lack, of_removal, of_rollout, of_spaces
from leafcast.explain.explanation import explained
from leafcast.explain.facts import CopyFacts, Explanation, NodeOnTheWay
from leafcast.explain.selection import NOT_NEAR, how_near, object_unmet, place_unmet
from leafcast.show.stages import CopyStage
from relay.core.gates import Candidate
from relay.core.node_answers import HERE
from relay.ports import BusBroken, Clock
from relay.shell.asker import AskFailed
from schemas.objects.objects import NAMESPACES, Object, ObjectKey, texts_of
from schemas.records.asks import GET, STATUS
from schemas.records.placements import bare_name, kind_of, meant, short_title, title
from schemas.records.records import LocationRecord, Profile
from schemas.values.identity import MailKey, NodePath, mail_key
from schemas.values.wording import namespace_first

EXPLAINED_MAX = 4
"""Of so many placements that select an object it is asked on the way."""
MISSED_MAX = 3
"""So many placements that do not select it are told of."""
LOOKED_AT_MAX = 5_000
"""Among so many objects it is looked for the one that a placement nearly selects."""
_NOBODY = mail_key("", "", "", "")
"""The key of no placement."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked about: a destination, and an object or all of a placement."""

    profile: Profile
    locations: tuple[LocationRecord, ...]
    object: ObjectKey | None = None
    # The object as it lies at the centre; None if it does not.
    there: Object | None = None

    @property
    def path(self) -> str:
        return str(self.profile.path)

    @property
    def who(self) -> Candidate:
        return Candidate(self.profile, lambda _: self.locations)


@dataclass(frozen=True, slots=True)
class WhyVerbs:
    """Answers why a copy is not as it is meant."""

    _centre: Centre
    _asks: CentreAsks
    _clock: Clock

    @verb("why")
    async def why(
        self,
        path: str,
        placement: str = "",
        object: list[str] | None = None,  # noqa: A002
    ) -> dict[str, Any]:
        """Why a placement, or one object (group, resource, namespace, name), is not there as meant.

        `{path, object, ok, more, explanations: [{placement, stage, said, remedy, sinceMs, at}]}`:
        one of each placement that brings it, or of those that nearly do; `more` were not asked
        about. Raises ApiError.
        """
        controllers = running(self._centre.controllers)
        await until_seen(controllers)
        asked = await self._asked(controllers, NodePath.parse(path), object)
        if placement:
            names, more = [named_placement(self._centre, placement)], 0
        else:
            names, more = self._candidates(controllers, asked)
        found = await self._explained(controllers, names, asked)
        return {
            "path": asked.path,
            "object": str(asked.object) if asked.object is not None else "",
            "ok": not any(each.blocks for _, each in found),
            "more": more,
            "explanations": [
                {
                    "placement": title(name) if name else "",
                    "stage": each.stage.value,
                    "said": each.said,
                    "remedy": each.remedy,
                    "sinceMs": each.since_ms,
                    "at": each.at,
                }
                for name, each in found
            ],
        }

    async def _asked(
        self, controllers: Controllers, path: NodePath, words: Sequence[str] | None
    ) -> _Asked:
        profile = destination_at(controllers, path)
        located = tuple(locations_of(controllers.issuer.records.values())(profile))
        if words is None:
            return _Asked(profile, located)
        key = ObjectKey(*words)
        there = controllers.translator.workloads.resolver.objects.get(key)
        if there is None:
            there = await running(self._centre.workloads).get(key)
        return _Asked(profile, located, key, there)

    def _candidates(self, controllers: Controllers, asked: _Asked) -> tuple[list[str], int]:
        """The placements that bring the object to the place; else those that nearly do.

        With them how many more there are.
        """
        workloads = controllers.translator.workloads
        assert asked.object is not None
        selecting = workloads.resolver.selecting(asked.object)
        meaning = [name for name in selecting if not _place_unmet(controllers, name, asked)]
        if meaning or selecting:
            return _first(meaning or selecting, EXPLAINED_MAX)
        if sent := controllers.translator.placements.holding(asked.object):
            # It is out, and its removal may be held.
            return _first(sent, EXPLAINED_MAX)
        if asked.there is None:
            return [], 0
        names = sorted(workloads.placements)
        near = {name: how_near(_misses(controllers, name, asked)) for name in names}
        return _first(sorted(names, key=lambda name: -near[name]), MISSED_MAX)

    async def _explained(
        self, controllers: Controllers, names: Sequence[str], asked: _Asked
    ) -> list[tuple[str, Explanation]]:
        found = list[tuple[str, Explanation]]()
        for name in names:
            decided = list(_decided(controllers, self._centre, name, asked))
            unselected = any(it.stage is CopyStage.NOT_SELECTED for it in decided[:1])
            if unselected and found:
                # It was looked at already whether it lies there.
                found.append((name, decided[0]))
                continue
            found.append((name, explained(await self._facts(controllers, name, asked, decided))))
        if not names:
            found.append(("", explained(await self._facts(controllers, "", asked, _nobody(asked)))))
        # Why it is there though nobody sends it is one story.
        for name, each in found:
            if each.stage in (CopyStage.LEAVING, CopyStage.SURPLUS):
                return [(name, each)]
        return found

    async def _facts(
        self,
        controllers: Controllers,
        name: str,
        asked: _Asked,
        decided: Sequence[Explanation],
    ) -> CopyFacts:
        """What the nodes on the way say, from the centre down to the first that cannot."""
        key = controllers.translator.source(name).key if name else _NOBODY
        is_meant = not any(it.stage is CopyStage.NOT_SELECTED for it in decided)
        facts = CopyFacts(
            now_ms=self._clock.now().wall_ms,
            path=asked.path,
            placement=short_title(name) if name else "",
            object=str(asked.object) if asked.object is not None else "",
            decided=tuple(decided),
            meant=is_meant,
            see=f"leafcast status {short_title(name)} --destinations" if name else "",
        )
        if is_meant and decided:
            return facts
        nodes, last = list[NodeOnTheWay](), form_of(None)
        above: NodeOnTheWay | None = None
        names = asked.profile.path.names
        for depth in range(len(names) + 1):
            path = NodePath(names[:depth])
            child = names[depth] if depth < len(names) else ""
            node, answer = await self._node(path, child, key, above, asked)
            nodes.append(node)
            if answer is None:
                break
            last = answer
            if child:
                above = child_on_the_way(str(path.child(child)), answer)
        state, health = words_said(last)
        if above is not None and len(nodes) <= len(names):
            said = form_of(form_of(last.get("here")).get("child"))
            state, health = words_said(said)
        return replace(
            facts,
            nodes=tuple(nodes),
            state=state,
            health=health,
            samples=tuple(samples_said(facts.placement, asked.path, last)),
            copy=copy_said(last),
            lies_there=await self._lies_there(asked, copy_said(last)) if not is_meant else None,
        )

    async def _node(
        self,
        path: NodePath,
        child: str,
        key: MailKey,
        above: NodeOnTheWay | None,
        asked: _Asked,
    ) -> tuple[NodeOnTheWay, Form | None]:
        """A node, and its answer; None of one that gave none."""
        if above is not None and above.since_ms is not None:
            return above, None
        said = {HERE: "", "placement": key, "child": child, "limit": "1"}
        if asked.object is not None and not child:
            it = asked.object
            said |= {"group": it.group, "resource": it.resource}
            said |= {"namespace": it.namespace, "name": it.name}
        before = self._clock.now().wall_ms
        base = above or NodeOnTheWay(str(path))
        try:
            answer = form_of(await self._asks.ask(path, STATUS, said))
        except AskFailed as failed:
            fault = failed.fault
            said_no = fault.message or fault.reason or "it does not say why"
            return replace(base, refusal=said_no, refusal_reason=fault.reason), None
        except BusBroken as broken:
            said_no = str(broken) or "the bus is not there"
            return replace(base, refusal=said_no, refusal_reason="Restarting"), None
        middle = (before + self._clock.now().wall_ms) // 2
        return node_on_the_way(str(path), answer, above, middle), answer

    async def _lies_there(self, asked: _Asked, said: Any) -> bool | None:
        """Whether the object lies in the cluster of the destination; None if that is not known."""
        it = asked.object
        if it is None or (said is not None and said.known):
            return None
        where = {"group": it.group, "resource": it.resource, "namespace": it.namespace}
        try:
            answer = await self._asks.ask(asked.profile.path, GET, {**where, "name": it.name})
        except (AskFailed, BusBroken):
            return None
        return bool(form_of(answer).get("objects"))


def _first(names: Sequence[str], count: int) -> tuple[list[str], int]:
    """So many of them, and how many more there are."""
    return list(names[:count]), max(len(names) - count, 0)


def _decided(
    controllers: Controllers, centre: Centre, name: str, asked: _Asked
) -> Iterator[Explanation]:
    """What the centre decides, the first that counts first."""
    translator, now_ms = controllers.translator, controllers.now_ms
    workloads, placements = translator.workloads, translator.placements
    yield from of_spaces(centre.hub_troubles())
    if asked.object is None or asked.there is not None:
        lack, selects_nothing = workloads.lack(name), not workloads.resolver.count(name)
        near = _nearly_selected(controllers, name, asked) if lack and selects_nothing else None
        yield from of_lack(name, lack, near, selects_nothing=selects_nothing)
    unselected = _object_unmet(controllers, name, asked) or _place_unmet(controllers, name, asked)
    if unselected is not None:
        yield unselected
        yield from of_removal(controllers.summarizer.held(name))
        return
    forms = controllers.summarizer.held(name)
    refused = placements.refused.get(name, {})
    if asked.object is not None:
        refused = {key: why for key, why in refused.items() if key == asked.object}
    yield from of_holds(name, forms, asked.profile, refused, now_ms)
    if not any(form["reason"] == "Invalid" for form in forms):
        yield from invalid(name, workloads.invalid.get(name, ""))
    steered = steered_of(placements, name)
    if steered is not None:
        rejected = placements.rejections.objects.get(name, ())
        is_rejected = asked.object in rejected if asked.object is not None else bool(rejected)
        yield from of_rollout(
            steered, asked.profile, asked.locations, forms, now_ms, is_rejected=is_rejected
        )


def _object_unmet(controllers: Controllers, name: str, asked: _Asked) -> Explanation | None:
    """Why a placement does not select the object; None if it does, or none is asked about."""
    key, resolver = asked.object, controllers.translator.workloads.resolver
    if key is None or name in resolver.selecting(key):
        return None
    if asked.there is None:
        said = f"{namespace_first(str(key))} is not at the centre"
        return Explanation(CopyStage.NOT_SELECTED, said, "apply it: leafcast apply -f FILE")
    if stays := why_never_selected(key, asked.there):
        said = f"it stays at the centre whatever a placement says: {stays}"
        return Explanation(CopyStage.NOT_SELECTED, said, "give it another name or kind to send it")
    namespace = resolver.objects.get(ObjectKey(*NAMESPACES, "", key.namespace))
    labels = texts_of(asked.there, "labels")
    inside = texts_of(namespace, "labels") if namespace is not None else None
    return object_unmet(name, key, labels, inside, _misses(controllers, name, asked))


def _nearly_selected(controllers: Controllers, name: str, asked: _Asked) -> Explanation | None:
    """Why a placement that selects nothing does not select what comes nearest, if anything does."""
    found, nearest = None, NOT_NEAR
    objects = controllers.translator.workloads.resolver.objects
    for key, obj in islice(objects.items(), LOOKED_AT_MAX):
        one = replace(asked, object=key, there=obj)
        near = how_near(_misses(controllers, name, one))
        if near > nearest and not why_never_selected(key, obj):
            found, nearest = one, near
    unmet = _object_unmet(controllers, name, found) if found is not None else None
    if unmet is None or found is None:
        return None
    return replace(unmet, said=f"nearest is {namespace_first(str(found.object))}: {unmet.said}")


def _misses(controllers: Controllers, name: str, asked: _Asked) -> list[Any]:
    key, resolver = asked.object, controllers.translator.workloads.resolver
    assert key is not None
    labels = texts_of(asked.there, "labels") if asked.there is not None else {}
    namespace = resolver.objects.get(ObjectKey(*NAMESPACES, "", key.namespace))
    inside = texts_of(namespace, "labels") if namespace is not None else None
    return resolver.rules(name).unmet(key, labels, inside)


def _place_unmet(controllers: Controllers, name: str, asked: _Asked) -> Explanation | None:
    """Why a placement does not mean the destination; None if it does."""
    placement = controllers.translator.workloads.placements.get(name)
    if placement is None:
        said = f"{title(name)} is deleted"
        return Explanation(CopyStage.NOT_SELECTED, said, f"leafcast accept {short_title(name)}")
    meant_for = alternatives_of(placement.spec)
    if asked.who.chosen(meant_for) is not None:
        return None
    return place_unmet(name, asked.profile, asked.who.unmet(meant_for))


def _nobody(asked: _Asked) -> list[Explanation]:
    if asked.there is None:
        said = f"{namespace_first(str(asked.object))} is not at the centre"
        return [Explanation(CopyStage.NOT_SELECTED, said, "apply it: leafcast apply -f FILE")]
    said = "there is no placement"
    remedy = "apply one, or: leafcast place"
    return [Explanation(CopyStage.NOT_SELECTED, said, remedy)]


def named_placement(centre: Centre, placement: str) -> str:
    """The placement that a person means; raises ApiError if there is none."""
    names = placement_names(centre)
    if (found := meant(placement, names)) in names:
        return found
    remedy = f"there are: {listed(names)}" if names else "there are none yet: apply one"
    said = f'there is no {kind_of(found).kind} "{bare_name(found)}"'
    raise ApiError("NotFound", said, remedy)


def destination_at(controllers: Controllers, path: NodePath) -> Profile:
    """The destination that hangs there; raises ApiError if none does."""
    records: Iterable[object] = controllers.issuer.records.values()
    here = [item for item in records if isinstance(item, Profile) and item.path == path]
    if not here:
        raise _no_destination(controllers, path)
    return max(here, key=lambda item: item.generation)


def _no_destination(controllers: Controllers, path: NodePath) -> ApiError:
    """That nobody hangs there; of a relay which edges do."""
    records: Iterable[object] = controllers.issuer.records.values()
    below = sorted(
        str(it.path) for it in records if isinstance(it, Profile) and path.holds(it.path)
    )
    if below:
        said = f"{path} is a relay, and no destination"
        return ApiError("NotFound", said, f"name one below it, such as {below[0]}")
    remedy = "see those there are: leafcast get synctargets"
    return ApiError("NotFound", f"no destination hangs at {path}", remedy)
