"""Applies one object as its policies ask, and knows what of it is ours.

Nobody's field is taken unless it was ours before, or the object says so; nothing is created or
taken over before DONE says that it may be.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from relay.core.destination.claims import DesiredObject
from relay.objects.allocation_refusals import with_remedy, without_title
from relay.objects.field_owners import MANAGED
from relay.objects.health import terminating
from relay.objects.policies import Policies, policies_of
from relay.objects.unsaid_fields import fields_of, without_unknown
from relay.space_errors import Conflict, FieldConflict, SpaceError
from relay.space_port import Object, Space
from relay.syncer.aggregated_roles import RULES, is_aggregated, without_rules
from relay.syncer.customized_content import Customizing, customized
from relay.syncer.ended import as_it_ended, is_over, with_end
from relay.syncer.going import check_gone
from relay.syncer.lesser import mark_of
from relay.syncer.lingering import ending_text
from relay.syncer.list_items import (
    PUT_BACK_MANAGER,
    SAID_TWICE,
    MovedItem,
    items_in_the_way,
    leave_to_nobody,
    moved_items,
    put_back,
    still_there,
)
from relay.syncer.object_marks import (
    INVALID,
    MANAGER,
    POLICY_MANAGER,
    is_adopted,
    is_left_alone,
    is_ours,
    marked,
    of_this,
    paths_said,
    policy_alone,
    tree_of,
    without_replicas,
)
from relay.syncer.observed import ObservedState
from relay.syncer.ownership import (
    AUTOSCALERS,
    AUTOSCALING_MANAGER,
    ManagedFields,
    hold_of,
    is_marked,
    is_newborn,
    is_shared,
    marks,
    owned_fields,
    scaled_by,
    scales,
)
from relay.syncer.plan import namespace_object
from relay.syncer.record import AppliedObjects
from relay.syncer.recreation import check_replacement, source_after
from relay.syncer.ruled import RuledObjects
from schemas.content.blobs import OBJECT_MAX_BYTES, Reference
from schemas.content.sealing import SealingKey
from schemas.objects.annotations import CONFLICTS, EXISTING, LEAVE, REFUSE
from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import uid_of
from schemas.reports.reports import Done
from schemas.values import codec
from schemas.values.fields import Steps
from schemas.values.wire import replace
from schemas.values.wording import some_of

NAMED_MAX = 3

Loader = Callable[[Reference, SealingKey | None], Awaitable[bytes]]
"""The plain bytes of an object's blob, checked, and opened with a key if it is sealed.

Raises ContentMissing.
"""


class ContentMissing(Exception):
    """A loader of blobs cannot give the bytes now; the object is tried again later."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """One object to be applied: what is wanted of it, and what is known of it."""

    wanted: DesiredObject
    content: Object
    policies: Policies
    done: Done | None
    # With one, which DONE says already, it may be made without a look before.
    intent: Done | None = None

    @property
    def key(self) -> ObjectKey:
        return self.wanted.key

    @property
    def once(self) -> bool:
        """Whether it is made once, then left to whoever changes it."""
        return self.wanted.create_only or not self.policies.overwrite

    @property
    def plain(self) -> bool:
        """Whether nothing depends on what was there before, other than whose it is."""
        return self.done is None and not self.once and self.policies.is_plain

    @property
    def known(self) -> bool:
        """Whether it was applied, and not merely meant to be, or left as it was."""
        return self.done is not None and bool(self.done.uid) and not self.done.left

    def claimed(self, done: Done) -> Done:
        """The record with who asks for the object now."""
        wanted, policies = self.wanted, self.policies
        return replace(
            done,
            placements=wanted.placements,
            order=wanted.order,
            stay=not policies.overwrite,
            on_removal=policies.on_removal,
            asked=wanted.on_removal,
            kept=False,
        )


class Applier:
    """Applies objects to one space as one tree's; writes into the record what came of it."""

    def __init__(
        self,
        space: Space,
        tree: str,
        record: AppliedObjects,
        load: Loader,
        ruled: RuledObjects,
        customize: Customizing = customized,
    ) -> None:
        self._space = space
        self._tree = tree
        self._record = record
        self._load = load
        self._ruled = ruled
        self._customize = customize
        self._tells_managers = False
        # Wishes without what their space does not know, until that is in the record.
        self._lesser: dict[ObjectKey, Object] = {}
        # The Customizer that was read last.
        self._read: tuple[Reference, bytes] | None = None

    async def content(self, wanted: DesiredObject) -> Object:
        """What is wanted here; raises ContentMissing, CustomizationFailed and CodecError."""
        if not wanted.placements:
            return namespace_object(wanted.key.name)
        plain, form = await self._load(wanted.reference, wanted.sealed_under), wanted.form
        if form is None:
            obj: Object = codec.unpack(plain, OBJECT_MAX_BYTES, lists=True)
            return obj
        by = (
            await self._customizer(form.customizer, wanted.sealed_under)
            if form.customizer
            else None
        )
        return self._customize(wanted.key, plain, by, form.properties, "").object

    async def _customizer(self, reference: Reference, key: SealingKey | None) -> bytes:
        """A Customizer's bytes; many objects in a row have the same."""
        if self._read is None or self._read[0] != reference:
            self._read = (reference, await self._load(reference, key))
        return self._read[1]

    async def wish(self, wanted: DesiredObject, done: Done) -> Object:
        """What is applied: the content with our marks."""
        return self._marked(wanted.key, await self.content(wanted), done)

    async def prepare(self, wanted: DesiredObject, *, unseen: bool = False) -> ApplyRequest:
        """All that needs no word of the space: the content opened, the intent kept.

        An `unseen` one bears no marks of any tree that were told, so it is new, or nobody's.
        Raises ContentMissing, CustomizationFailed, PolicyUnknown and CodecError.
        """
        content = await self.content(wanted)
        policies = policies_of(wanted.key, content)
        request = ApplyRequest(wanted, content, policies, self._record.held.get(wanted.key))
        if not (unseen and self._tells_managers and request.plain):
            return request
        intent = self._intent(request, None)
        self._record.put(intent)
        await self._record.stored(wanted.key)
        return ApplyRequest(wanted, content, policies, None, intent)

    async def apply(self, request: ApplyRequest, *, look_first: bool) -> ObservedState | None:
        """Make the object as wanted; with `look_first` it may not be as it was left.

        None if it is not to be touched, and was not looked at. Raises SpaceError, ContentMissing
        and CodecError.
        """
        if request.done and request.known and not look_first:
            if request.once:
                return await self._leave_alone(request, request.done)
            if request.done.stay:
                await self._say_policy(request, request.done)
            try:
                return await self._write(request, request.claimed(request.done), None)
            except FieldConflict:
                raise
            except Conflict:
                # It went, or is another, and nobody told of that yet.
                return await self._look_and_apply(request)
        if request.intent is not None:
            sight = await self._try_to_make(request, request.intent)
            if sight is not None:
                return sight
        return await self._look_and_apply(request)

    async def _leave_alone(self, request: ApplyRequest, done: Done) -> ObservedState | None:
        """Leave it to its cluster; only the annotation that says so is kept in step.

        What was seen of it, if it is left alone from now on.
        """
        sight, begins = None, request.policies.overwrite == done.stay
        if begins or done.asked != request.wanted.on_removal:
            sight = await self._say_policy(request, done)
        address = done.address if request.wanted.create_only else request.wanted.address
        self._record.put(request.claimed(replace(done, address=address)))
        return sight if begins else None

    async def _say_policy(self, request: ApplyRequest, done: Done) -> ObservedState | None:
        live = await self._space.get(request.key)
        if live is None or uid_of(live) != done.uid:
            return None
        asked = request.wanted.on_removal if request.once else ""
        wish = policy_alone(live, overwrite=request.policies.overwrite, asked=asked)
        return self._ruled.look_at(request.key, await self._space.apply(wish, POLICY_MANAGER))

    async def _look_and_apply(self, request: ApplyRequest) -> ObservedState:
        wanted, policies = request.wanted, request.policies
        live = await self._space.get(wanted.key)
        if live is not None:
            self._tells_managers = MANAGED in live["metadata"]
        if live is not None and terminating(live):
            raise SpaceError("Terminating", await ending_text(self._space, request.key, live))
        if live is None and request.done is not None and is_over(wanted, request.done):
            self._record.put(request.claimed(request.done))
            return as_it_ended(request.done)
        if live is not None and self._is_foreign(request, live):
            other = tree_of(live, wanted.key)
            if other and not policies.force:
                raise SpaceError("AlreadyExists", _OTHERS.format(other))
            if policies.existing == REFUSE:
                raise SpaceError("AlreadyExists", _REFUSED)
            if request.once or policies.existing == LEAVE:
                return self._leave(request, live)
        intent = self._intent(request, live)
        self._record.put(intent)
        await self._record.stored(wanted.key)
        if live is not None and request.once:
            return self._keep(request, intent, live)
        if live is not None and is_left_alone(live):
            await self._space.apply(policy_alone(live, overwrite=True), POLICY_MANAGER)
        return await self._write(request, intent, live)

    async def _try_to_make(self, request: ApplyRequest, intent: Done) -> ObservedState | None:
        """Apply without a look before: a new object says that no one else wrote it.

        None if it was there; what we said in it then is said anew, as of one that was adopted.
        """
        wish = self._marked(request.key, request.content, intent)
        try:
            live = await self._send(request, wish, force=False)
        except FieldConflict:
            live = None
        if live is not None and is_newborn(live, MANAGER):
            return self._keep(request, intent, live)
        adopted = replace(intent, made=False)
        self._record.put(adopted)
        await self._record.stored(request.key)
        return None if live is None else await self._write(request, adopted, live)

    def _is_foreign(self, request: ApplyRequest, live: Object) -> bool:
        mine = request.done is not None and request.known and request.done.uid == uid_of(live)
        return not mine and not is_ours(live, request.key, self._tree)

    def _intent(self, request: ApplyRequest, live: Object | None) -> Done:
        """What DONE says before anything is created: whether the object is ours to delete."""
        wanted, done = request.wanted, request.done
        if live is None:
            made, uid = True, ""
        elif done is not None and request.known and done.uid == uid_of(live):
            made, uid = done.made, done.uid
        else:
            # Whoever stopped between an apply and what came of it does not know what was there.
            unsure = done is not None and not done.uid and is_shared(live, MANAGER)
            mine = is_ours(live, request.key, self._tree) and not is_adopted(live)
            made, uid = mine and not unsure, ""
        address = done.address if done and live is not None else wanted.address
        fresh = Done(wanted.key, uid, address, wanted.placements, made, wanted.order)
        if done is not None:
            fresh = replace(fresh, repaired=done.repaired, lost=done.lost)
        if done is not None and uid:
            held = {"held": done.held, "fields": done.fields}
            fresh = replace(fresh, **held, made_from=done.made_from)
        return request.claimed(fresh)

    def _leave(self, request: ApplyRequest, live: Object) -> ObservedState:
        address = request.wanted.address
        done = Done(request.key, uid_of(live), address, (), made=False, order=0, left=True)
        self._record.put(request.claimed(done))
        return self._ruled.look_at(request.key, live)

    async def _write(
        self, request: ApplyRequest, intent: Done, live: Object | None
    ) -> ObservedState:
        wish = of_this(self._marked(request.key, request.content, intent), intent.uid)
        if live is not None and await self._is_scaled(request.key, live):
            wish = without_replicas(wish)
        if live is not None and is_aggregated(request.key, live):
            wish = without_rules(wish)
        same = bool(intent.held) and intent.address == request.wanted.address
        force = live is not None and (request.policies.force or same)
        left = await self._put_back_moved(request, intent, wish, live) if live is not None else []
        try:
            live = await self._apply_or_contest(request, intent, wish, force=force)
            if left and (beside := still_there(live, wish, left)):
                await put_back(self._space, request.key, live, beside, wish, intent.fields)
                live = await self._apply_or_contest(request, intent, wish, force=force)
        except Conflict:
            raise
        except SpaceError as error:
            if await self._is_way_free(request, intent, wish, error):
                live = await self._apply_or_contest(request, intent, wish, force=force)
            else:
                live = await self._recreate(request, intent, wish, error)
                intent = self._record.held[request.key]
        if terminating(live):
            raise SpaceError("Terminating", await ending_text(self._space, request.key, live))
        return self._keep(request, intent, live)

    async def _send(self, request: ApplyRequest, wish: Object, *, force: bool) -> Object:
        """Apply a wish, without what nobody said if the space does not know it.

        What it refuses is said with the remedy.
        """
        self._lesser.pop(request.key, None)
        while True:
            try:
                return await self._space.apply(wish, MANAGER, force=force)
            except Conflict:
                raise
            except SpaceError as error:
                unsaid = await self._unsaid(request.wanted)
                lesser = without_unknown(wish, unsaid, error.message)
                if lesser is None:
                    said = with_remedy(request.key, error.message)
                    raise SpaceError(error.reason, said) from error
                self._lesser[request.key] = wish = lesser

    async def _unsaid(self, wanted: DesiredObject) -> frozenset[Steps]:
        """The fields of what was sent that nobody said; raises ContentMissing and CodecError."""
        if not wanted.unsaid:
            return frozenset()
        plain = await self._load(wanted.reference, wanted.sealed_under)
        return fields_of(codec.unpack(plain, OBJECT_MAX_BYTES, lists=True), wanted.unsaid)

    def _keep(self, request: ApplyRequest, intent: Done, live: Object) -> ObservedState:
        """Write into the record what the object is now."""
        hold, uid = hold_of(live, MANAGER), uid_of(live)
        self._tells_managers = hold is not None
        sight = self._ruled.look_at(request.key, live, hold)
        said = paths_said(self._marked(request.key, request.content, intent))
        hold = hold or ManagedFields(sight.held, marks(said))
        kept = request.wanted.create_only and bool(intent.uid)
        address = intent.address if kept else request.wanted.address
        made = intent.made and intent.uid in ("", uid)
        applied = replace(
            request.claimed(intent),
            uid=uid,
            address=address,
            made=made,
            held=hold.digest,
            fields=hold.fields,
            left=False,
            made_from=source_after(intent, request.wanted.source_object),
            lesser=mark_of(request.wanted) if self._lesser.pop(request.key, None) else b"",
        )
        self._record.put(with_end(applied, sight))
        return sight

    def _marked(self, key: ObjectKey, content: Object, done: Done) -> Object:
        return marked(content, key, self._tree, adopted=not done.made, asked=done.asked)

    async def _put_back_moved(
        self, request: ApplyRequest, intent: Done, wish: Object, live: Object
    ) -> list[MovedItem]:
        """Put items of ours back whose key somebody changed; those that the space does not let."""
        if moved := moved_items(live, wish, intent.fields):
            went = await put_back(self._space, request.key, live, moved, wish, intent.fields)
            return [] if went else moved
        if any(owned.manager == PUT_BACK_MANAGER for owned in owned_fields(live)):
            # It was stopped amid that.
            await leave_to_nobody(self._space, request.key, live)
        return []

    async def _is_way_free(
        self, request: ApplyRequest, intent: Done, wish: Object, refused: SpaceError
    ) -> bool:
        """Whether items that stood in the way went back; raises SpaceError if they are others'."""
        if refused.reason != INVALID:
            return False
        live = await self._space.get(request.key)
        if live is None or intent.uid not in ("", uid_of(live)):
            return False
        mine, theirs = items_in_the_way(
            live, wish, intent.fields, refused.message, force=request.policies.force
        )
        if mine:
            return await put_back(self._space, request.key, live, mine, wish, intent.fields)
        if theirs and SAID_TWICE.search(refused.message):
            whose = f"{some_of(theirs[0].managers, 1)} has {theirs[0].path}"
            said = f"{without_title(refused.message)}; {whose}: {_TAKE_OUT}"
            raise SpaceError(refused.reason, said) from refused
        return False

    async def _apply_or_contest(
        self, request: ApplyRequest, intent: Done, wish: Object, *, force: bool
    ) -> Object:
        try:
            return await self._send(request, wish, force=force)
        except FieldConflict as conflict:
            return await self._contested(request, intent, wish, conflict)

    async def _contested(
        self, request: ApplyRequest, intent: Done, wish: Object, conflict: FieldConflict
    ) -> Object:
        """Take what was ours or is asked for, never what a cluster sets; or FieldConflict."""
        managers = dict(conflict.managers)
        live = await self._space.get(request.key)
        if live is not None and is_aggregated(request.key, live):
            wish = without_rules(wish)
            managers = {at: name for at, name in managers.items() if at.strip(".") != RULES}
        ours = {path for path in managers if is_marked(path, intent.fields)}
        if live is not None and scaled_by(live):
            scale = {path for path in managers if path.removeprefix(".") == "spec.replicas"}
            if await self._is_scaled(request.key, live):
                wish = without_replicas(wish)
                managers = {path: name for path, name in managers.items() if path not in scale}
            ours |= scale
        others = {path: name for path, name in managers.items() if path not in ours}
        if others and not request.policies.force:
            raise FieldConflict("Conflict", _contention(others), others) from conflict
        return await self._send(request, wish, force=bool(managers))

    async def _is_scaled(self, key: ObjectKey, live: Object) -> bool:
        """Whether an autoscaler sets the replicas, and is not one that is gone."""
        manager = scaled_by(live)
        if manager != AUTOSCALING_MANAGER:
            return bool(manager)
        try:
            listing = await self._space.list(*AUTOSCALERS, namespace=key.namespace)
        except SpaceError:
            return True
        return any(scales(one, key.group, key.name) for one in listing.objects)

    async def _recreate(
        self, request: ApplyRequest, intent: Done, wish: Object, refused: SpaceError
    ) -> Object:
        """Replace an object that cannot be changed, if somebody asks for that and it is ours."""
        source = request.wanted.source_object
        known = self._lesser.get(request.key, wish)
        await check_replacement(self._space, known, request.policies, intent, source, refused)
        await self._space.delete(request.key, uid=intent.uid)
        await check_gone(self._space, request.key, intent.uid)
        live = await self._space.get(request.key)
        if live is not None:
            raise SpaceError("Terminating", terminating(live) or refused.message)
        self._record.put(replace(intent, uid="", held="", fields=b"", made_from=None))
        await self._record.stored(request.key)
        return await self._send(request, of_this(wish, ""), force=True)


_REFUSED = (
    f"it is there already and not ours: delete it, or annotate the object with {EXISTING}: adopt"
)
_TAKE_OUT = f"take it out there, or annotate the object with {CONFLICTS}: force"
_OTHERS = f"it is the tree {{}}'s: let only one apply it, or annotate it with {CONFLICTS}: force"


def _contention(managers: Mapping[str, str]) -> str:
    by_name: dict[str, list[str]] = {}
    for path, name in sorted(managers.items()):
        by_name.setdefault(name, []).append(path.removeprefix("."))
    said = "; ".join(f"{name} owns {some_of(paths, NAMED_MAX)}" for name, paths in by_name.items())
    return f"{said}: leave these fields out, or annotate the object with {CONFLICTS}: force"
