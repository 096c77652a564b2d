"""Each placement's CombinedStatuses say what its collectors collected, of each object one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from controllers.core.status.combined import (
    REPORT_NAMESPACE,
    combined_status,
)
from controllers.core.workloads.collectors import COMBINED
from controllers.core.workloads.selection import STAYS_LABEL
from controllers.work_queue import WorkQueue
from controllers.workloads.placement_translator import PlacementTranslator
from relay.core.collectors.collected_results import Result
from relay.space_errors import UNAVAILABLE, SpaceError
from schemas.objects.objects import Object, ObjectKey, texts_of
from schemas.records.placements import placement_key, title
from schemas.reports.collectors import COMPLETE_ANNOTATION, PLACEMENT_ANNOTATION, WHOLE

MANAGER = "leafcast-collectors"
GAP_SECONDS, MOVING_GAP_SECONDS = 0.5, 5.0
"""Between two writes of one placement's: when all is counted, and while it is not."""

_Written = dict[ObjectKey, Mapping[str, Any]]


class CombinedStatuses:
    """Keeps the CombinedStatuses of one workload description space."""

    def __init__(self, translator: PlacementTranslator, queue: WorkQueue[str]) -> None:
        self._translator = translator
        self._queue = queue
        self._relay, self._space, self._clock = translator.relay, translator.space, translator.clock
        # What lies in the space, by the placement's title; None before that was looked at.
        self._written: dict[str, _Written] | None = None
        self._written_at: dict[str, float] = {}
        self._has_namespace = False
        # By placement: the first one that the space refused, and why.
        self._refused: dict[str, str] = {}

    def refused(self, name: str) -> str:
        """Which CombinedStatus of a placement the space does not take, and why; "" if it does."""
        return self._refused.get(name, "")

    async def write(self, name: str, *, hurried: bool) -> bool:
        """Bring those of one placement up to date; False if that is to be tried again."""
        if not self._translator.placements.known:
            return False
        try:
            return await self._write(name, hurried=hurried)
        except SpaceError:
            return False

    async def _write(self, name: str, *, hurried: bool) -> bool:
        """As write; raises SpaceError if the space does nothing now."""
        written = self._all().get(title(name), {})
        placement = self._translator.workloads.objects.get(name)
        if placement is None or self._translator.workloads.collectors.missing(name) is None:
            self._refused.pop(name, None)
            return await self._keep_only({}, name)
        key = self._translator.source(name).key
        count = self._relay.count(key)
        if count is None:
            return True
        wanted = self._wanted(name, placement, complete=count.exact)
        changed = {k: obj for k, obj in wanted.items() if _said(obj) != written.get(k)}
        if not changed and wanted.keys() == written.keys():
            self._refused.pop(name, None)
            return True
        gap = GAP_SECONDS if count.exact else MOVING_GAP_SECONDS
        wait = self._written_at.get(name, float("-inf")) + gap - self._clock.now().seconds
        if wait > 0 and not hurried:
            self._queue.add_later(name, wait)
            return True
        self._written_at[name] = self._clock.now().seconds
        refused = [await self._put(name, key, obj) for key, obj in changed.items()]
        kept = await self._keep_only(wanted, name)
        if said := next(filter(None, refused), ""):
            self._refused[name] = said
            return False
        self._refused.pop(name, None)
        return kept

    def _wanted(self, name: str, placement: Object, *, complete: bool) -> dict[ObjectKey, Object]:
        """What the collectors say of each object that is still selected, and of the placement."""
        workloads = self._translator.workloads
        results_of = defaultdict[ObjectKey, list[Result]](list)
        collectors_of = workloads.resolver.collectors(name)
        for result in self._relay.collected(self._translator.source(name).key):
            program, whole = result.program, result.key == WHOLE
            of_object = result.program.name in collectors_of.get(result.key, ())
            if program == workloads.collectors.values.get(program.name) and (whole or of_object):
                results_of[result.key].append(result)
        whole_subject = placement_key(name), placement
        wanted: dict[ObjectKey, Object] = {}
        for key, results in results_of.items():
            about = whole_subject if key == WHOLE else (key, workloads.resolver.objects[key])
            obj = combined_status(
                about, whole_subject, results, title=title(name), complete=complete
            )
            metadata = obj["metadata"]
            wanted[ObjectKey(*COMBINED, metadata["namespace"], metadata["name"])] = obj
        return wanted

    async def _put(self, name: str, key: ObjectKey, obj: Object) -> str:
        """Write one; why that was refused."""
        try:
            if key.namespace == REPORT_NAMESPACE and not self._has_namespace:
                await self._make_namespace()
            await self._space.apply(dict(obj), MANAGER)
        except SpaceError as error:
            if error.reason == UNAVAILABLE:
                raise
            [owner] = obj["metadata"]["ownerReferences"]
            return f"{owner['kind']} {owner['name']}: {error.message}"
        self._all().setdefault(title(name), {})[key] = _said(obj)
        return ""

    async def _make_namespace(self) -> None:
        """Make the namespace of reports, unless it is there: `leafcast install` makes it, too."""
        if await self._space.get(ObjectKey("", "namespaces", "", REPORT_NAMESPACE)) is None:
            metadata = {"name": REPORT_NAMESPACE, "labels": {STAYS_LABEL: "true"}}
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            await self._space.apply(namespace, MANAGER)
        self._has_namespace = True

    async def _keep_only(self, wanted: Mapping[ObjectKey, Object], name: str) -> bool:
        written, kept = self._all().get(title(name), {}), True
        for key in [key for key in written if key not in wanted]:
            try:
                await self._space.delete(key)
            except SpaceError as error:
                if error.reason == UNAVAILABLE:
                    raise
                kept = False
            else:
                del written[key]
        return kept

    def _all(self) -> dict[str, _Written]:
        if self._written is None:
            self._written = {}
            resolver = self._translator.workloads.resolver
            for key in resolver.of_kind(COMBINED):
                obj = resolver.objects[key]
                named = texts_of(obj, "annotations").get(PLACEMENT_ANNOTATION)
                if named is not None:
                    self._written.setdefault(named, {})[key] = _said(obj)
        return self._written


def _said(obj: Object) -> Mapping[str, Any]:
    """What makes a CombinedStatus another one."""
    complete = texts_of(obj, "annotations").get(COMPLETE_ANNOTATION)
    return {"results": obj.get("results"), "complete": complete}
