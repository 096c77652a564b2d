"""A trivial cluster and its syncer: objects by key, applied by the real plan, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relay.core.destination.claims import DesiredObject
from relay.core.events import ObjectObserved
from relay.syncer.plan import ApplyObject, PruneObject
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Done
from tests.simulation.collectors import status_of
from tests.whole_plan import plan

if TYPE_CHECKING:
    from tests.simulation.host import Host
    from tests.simulation.world import World

RETRY_SECONDS = 5.0


class EdgeSpace:
    """What a cluster holds: per key the content's address and a uid; both outlive every process.

    `refusing` are keys that the cluster will not take now.
    """

    def __init__(self, world: World, host: Host) -> None:
        self.objects: dict[ObjectKey, tuple[str, str]] = {}
        self.refusing: dict[ObjectKey, None] = {}
        self.refused_for_good: dict[ObjectKey, None] = {}
        self._world, self._host = world, host
        self._uids = 0
        self._planned = self._told = False
        self._waiting: dict[ObjectKey, float] = {}
        self._said: dict[ObjectKey, ObjectObserved] = {}

    def started(self) -> None:
        """The process is new: look at everything that was applied."""
        self._planned = self._told = False
        self._waiting.clear()
        self._said.clear()
        if self._host.attached:
            for done in list(self._host.streams.done.values()):
                self._say(done.key)

    def told(self) -> None:
        """The node says what is wanted: not before may the syncer do anything."""
        self._told = True
        self.wake()

    def wake(self) -> None:
        if self._told and not self._planned and self._host.attached:
            self._planned = True
            self._world.after(self._world.delay(), self._step, self._host.run)

    def drift(self, key: ObjectKey, *, delete: bool) -> None:
        """Someone else changes or deletes an object."""
        self._world.watcher.drifted(self._host)
        if delete:
            self.objects.pop(key, None)
        else:
            self.objects[key] = ("drift", self.objects[key][1])
        if self._host.node is not None and str(key) in self._host.streams.done:
            self._say(key)
            self.wake()

    def applied(self) -> dict[ObjectKey, Done]:
        return {done.key: done for done in self._host.streams.done.values()}

    def _step(self, run: int) -> None:
        """Carry out the first action that may be; the next one follows."""
        node = self._host.node
        if run != self._host.run or node is None:
            return
        self._planned = False
        ports = self._world.ports
        if ports.pauses(self._host, honest=node.in_maintenance):
            # It is told when that ends.
            return
        wanted = {
            key: DesiredObject(
                key,
                want.reference,
                want.order,
                want.flags,
                want.placements,
                want.form,
                want.sealed_under,
                want.mark,
            )
            for key, want in ports.wanted(self._host, node.wanted).items()
        }
        applied = self.applied()
        drifted = [key for key in applied if self._drifted(applied[key])]

        def may_prune(key: ObjectKey) -> bool:
            return ports.may_prune(self._host, key, honest=node.may_prune(key))

        actions = plan(wanted, applied, may_prune=may_prune, drifted=drifted)
        planned = {a.wanted.key if isinstance(a, ApplyObject) else a.done.key for a in actions}
        for key in [k for k, said in self._said.items() if said.error and k not in planned]:
            self._say(key)
        for action in actions:
            key = action.wanted.key if isinstance(action, ApplyObject) else action.done.key
            if self._waiting.get(key, 0.0) > self._world.now:
                continue
            self._waiting.pop(key, None)
            self._carry_out(action)
            self.wake()
            return

    def _carry_out(self, action: ApplyObject | PruneObject) -> None:
        if isinstance(action, ApplyObject):
            self._apply(action.wanted)
        else:
            self._prune(action.done)

    def _apply(self, wanted: DesiredObject) -> None:
        key, done = wanted.key, self.applied().get(wanted.key)
        if done is None:
            made = key not in self.objects
            self._store(Done(key, "", wanted.address, wanted.placements, made, wanted.order))
            return
        refused = key in self.refusing or key in self.refused_for_good
        refused = refused or self._world.random.random() < self._world.faults.refusal
        if refused:
            self._retry(key)
            self._say(key, "Refused: the cluster does not take it")
            return
        address = wanted.address
        self._world.watcher.applying(self._host, key, address, wanted.placements)
        self._world.note(self._host.path, f"apply {key.name} {address[:8]}")
        uid = self.objects[key][1] if key in self.objects else self._uid()
        self.objects[key] = (address, uid)
        self._store(Done(key, uid, address, wanted.placements, done.made, wanted.order))
        self._say(key)

    def _prune(self, done: Done) -> None:
        self._world.watcher.pruning(self._host, done.key, made=done.made)
        self._world.note(self._host.path, f"prune {done.key.name}")
        if done.made:
            self.objects.pop(done.key, None)
        self._host.streams.done.pop(str(done.key), None)
        self._say(done.key, gone=True)

    def _retry(self, key: ObjectKey) -> None:
        self._waiting[key] = self._world.now + RETRY_SECONDS
        self._world.after(RETRY_SECONDS, self._again, self._host.run)

    def _again(self, run: int) -> None:
        if run == self._host.run:
            self.wake()

    def _store(self, done: Done) -> None:
        self._host.streams.done[str(done.key)] = done

    def _uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"

    def _drifted(self, done: Done) -> bool:
        return bool(done.uid) and self.objects.get(done.key) != (done.address, done.uid)

    def _say(self, key: ObjectKey, error: str = "", *, gone: bool = False) -> None:
        done, held = self.applied().get(key), self.objects.get(key)
        present = held is not None and not gone
        fits = done is not None and bool(done.uid) and not self._drifted(done)
        said = ObjectObserved(
            key,
            present=present,
            address=done.address if done and fits else "",
            error=error,
            health="healthy" if present else "unknown",
            status=status_of(held[0]) if held is not None and present else None,
        )
        if gone:
            self._said.pop(key, None)
            self._host.tell(said)
        elif self._said.get(key) != said:
            self._said[key] = said
            self._host.tell(said)
