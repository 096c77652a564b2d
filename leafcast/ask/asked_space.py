"""A space of the centre's as a command reads it, by way of its daemon: there is no other way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leafcast.ask.failures import AWAY, CallFailed, NotRunning
from relay.space_errors import AnotherSpace, Conflict, FieldConflict, SpaceError

if TYPE_CHECKING:
    from relay.ports import Clock
    from relay.space_port import Interests, Listing, Object, SpaceEvent, Tell
    from schemas.objects.objects import ObjectKey
    from schemas.objects.selectors import LabelSelector

VERB = "space"
FOLLOW_VERB, NEWS_VERB, END_VERB = "space-follow", "space-news", "space-end"
SECONDS = 60.0
"""An API server may take long to admit an object."""
_ERRORS: Mapping[str, type[SpaceError]] = {
    kind.__name__: kind for kind in (SpaceError, Conflict, AnotherSpace)
}

GONE = "FollowedNoMore"
"""What the daemon says of a follower that it does not know, or no longer."""
BUSY = "Busy"
"""What it says if it follows for as many commands as it can."""
_AWAY = AWAY | {BUSY, GONE}
"""Why what is followed is to be followed anew."""
_AGAIN_SECONDS_MIN, _AGAIN_SECONDS_MAX = 0.25, 5.0
_NEWS_SECONDS, _END_SECONDS = 30.0, 1.0

Call = Callable[..., Awaitable[Any]]
"""Has the daemon do a verb; raises CallFailed."""
Calling = Callable[[], AbstractAsyncContextManager[Call]]
"""Opens another way to have the daemon do verbs; raises NotRunning."""


@dataclass(slots=True)
class AskedSpace:
    """Implements what commands need of relay.space_port.Space: they read, and write by batches."""

    _call: Call
    _name: str
    _calling: Calling
    _clock: Clock
    # Tells a person why nothing is followed for the time being.
    _say: Callable[[str], None] = lambda _: None

    async def _do(self, what: str, **arguments: Any) -> Any:
        """Have the daemon do one thing; raises SpaceError."""
        asked = {"name": self._name, "what": what, "arguments": arguments}
        try:
            said = await self._call(VERB, seconds=SECONDS, **asked)
        except CallFailed as failed:
            raise SpaceError(failed.code, str(failed)) from failed
        if "refused" in said:
            raise refusal_of(said["refused"])
        return said["value"]

    async def identity(self) -> str:
        return str(await self._do("identity"))

    async def follow(self, interests: Interests, tell: Tell) -> None:
        """As the space does, of what is wanted when it begins; through restarts of the tree."""
        pause = _AGAIN_SECONDS_MIN

        async def told(event: SpaceEvent) -> None:
            nonlocal pause
            pause = _AGAIN_SECONDS_MIN
            await tell(event)

        while True:
            try:
                async with self._calling() as call:
                    await self._followed(call, interests, told)
            except NotRunning:
                pass  # The tree is away, which is waited out.
            except CallFailed as failed:
                if failed.code not in _AWAY:
                    raise SpaceError(failed.code, str(failed)) from failed
                if failed.code == BUSY:
                    self._say(f"{failed}; trying again")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _AGAIN_SECONDS_MAX)

    async def _followed(self, call: Call, interests: Interests, tell: Tell) -> None:
        from leafcast.ask.space_events import EventReader, interest_form  # noqa: PLC0415

        wanted = interests.wanted
        forms = None if wanted is None else [interest_form(one) for one in wanted]
        begun = await call(FOLLOW_VERB, name=self._name, interests=forms)
        reader, number = EventReader(), 0
        try:
            while True:
                asked = {"follower": begun["follower"], "after": number}
                news = await call(NEWS_VERB, seconds=_NEWS_SECONDS, **asked)
                if "refused" in news:
                    raise refusal_of(news["refused"])
                number = news["number"]
                for form in news["events"]:
                    event = reader.read(form)
                    if event is not None:
                        await tell(event)
        finally:
            # Who cannot say that it ends is forgotten a minute later.
            with suppress(CallFailed, NotRunning):
                await call(END_VERB, seconds=_END_SECONDS, follower=begun["follower"])

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        from relay.space_port import Listing  # noqa: PLC0415 - many commands list nothing

        found = await self._do(
            "list",
            group=group,
            resource=resource,
            namespace=namespace,
            selector=selector.to_kubernetes() if selector is not None else None,
        )
        return Listing(tuple(found["objects"]), found["revision"])

    async def get(self, key: ObjectKey) -> Object | None:
        found: Object | None = await self._do("get", key=key_form(key))
        return found


def key_form(key: ObjectKey) -> list[str]:
    """`[group, resource, namespace, name]`."""
    return [key.group, key.resource, key.namespace, key.name]


def refusal_form(error: SpaceError) -> dict[str, Any]:
    """An error of a space as the daemon tells it."""
    managers = dict(error.managers) if isinstance(error, FieldConflict) else None
    kind = next((name for name, one in _ERRORS.items() if type(error) is one), "SpaceError")
    kind = "Conflict" if isinstance(error, Conflict) else kind
    return {"kind": kind, "reason": error.reason, "message": error.message, "managers": managers}


def refusal_of(form: Mapping[str, Any]) -> SpaceError:
    """The same error again, of what `refusal_form` gives."""
    reason, message, managers = form["reason"], form["message"], form.get("managers")
    if managers is not None:
        return FieldConflict(reason, message, managers)
    return _ERRORS.get(form["kind"], SpaceError)(reason, message)
