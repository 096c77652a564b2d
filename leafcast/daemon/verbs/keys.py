"""The verbs about a tree's keys, those of content among them: what there is, what is to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from controllers.centre import Controllers
from controllers.core.access.keyring import Keyring
from controllers.core.access.keys import (
    KeyChange,
    KeyRing,
    KeysRefused,
    KeysRequest,
    missing_signatures,
    signs_alone,
)
from controllers.issuing.keys import new_signer
from leafcast.ask.api import ApiError, verb
from leafcast.centre.centre import Centre, running
from leafcast.key_files import public_keys, request_form, request_from
from relay.core.records.trust import RootsRefused
from relay.ports import Dice
from schemas.content.sealing import FLEET_KEYS_MAX, fleet_key, key_id
from schemas.records.placements import meant, short_title
from schemas.records.records import DeltaHead, KeyGrant, Profile
from schemas.records.signing import Signer
from schemas.values.identity import KeyId, check_mail_key
from schemas.values.refusals import RecordRefused

IN_USE, ENDED, REVOKED = "in use", "ended", "revoked"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Key:
    """One key, as the verb `keys` tells of it."""

    id: str
    kind: str
    scope: str = "-"
    state: str = IN_USE
    first: int = 0
    last: int = 0
    # How much in force it has signed.
    records: int = 0
    here: bool = True


class KeyVerbs:
    """The verbs of a daemon about keys; each raises BusBroken while the centre starts."""

    def __init__(self, centre: Centre, dice: Dice) -> None:
        self._centre = centre
        self._dice = dice

    @verb("keys")
    async def keys(self) -> Json:
        """All keys: `{keys: [{id, kind, scope, first, last, state, here, records}], …}`.

        `threshold`, `version` and `publicRoots` (in hex) are those of the roots; a root has no
        generations. With `seals` content is sealed.
        """
        ring, counts = self._ring(), self._centre.issuer().signed_by()
        record, roots = ring.record, ring.pinned
        grants = record.grants if record is not None else ()
        here = {signer.key_id for signer in (ring.signing, *ring.roots)}
        listed = [_Key(root, "root", "keys", here=root in here) for root in sorted(roots.keys)]
        listed += [
            _Key(
                grant.key_id,
                "signing",
                _scope(grant),
                _state(grant, ring),
                grant.first,
                grant.last,
                counts[grant.key_id],
                here=grant.key_id in here,
            )
            for grant in grants
        ]
        sealing = self._centre.keys().sealing
        listed += _fleet_keys(sealing.ring)
        return {
            "keys": list(map(asdict, listed)),
            "threshold": roots.threshold,
            "version": roots.version,
            "tree": ring.tree,
            "publicRoots": {key: public.hex() for key, public in sorted(roots.keys.items())},
            "seals": sealing.seals,
        }

    @verb("keys-change")
    async def change(
        self,
        what: str = "",
        key: str = "",
        roots: Mapping[str, str] | None = None,
        threshold: int = 0,
        *,
        may_wait: bool = False,
    ) -> Json:
        """Rotate `what` (signing or root), or revoke a `key`, of which the id's beginning will do.

        `roots` are all new public root keys in hex, by id. If signatures are missing that only
        others can give, the answer is a request for them, provided that it `may_wait`:
        `{request: form or null, lacks: [what]}`. Raises ApiError.
        """
        ring = self._ring()
        try:
            if key:
                change = self._revocation(ring, key)
            elif what == "signing":
                change = KeyChange(signing=new_signer(ring.tree, self._dice))
            elif what == "root":
                change = self._other_roots(ring, roots or {}, threshold)
            else:
                raise ApiError("Invalid", f"no keys are called {what!r}", "say signing or root")
            if not may_wait and not signs_alone(ring, change):
                raise _elsewhere(ring, change)
            request = await self._centre.issuer().change_keys(change)
        except (KeysRefused, RootsRefused) as error:
            raise _refused(error) from error
        if request is None:
            return {"request": None, "lacks": []}
        return {"request": request_form(request), "lacks": self._lacks(request)}

    @verb("keys-publish")
    async def publish(self, request: Mapping[str, Any]) -> Json:
        """Put a request in force that was signed: `{}`. Raises ApiError."""
        try:
            read = request_from(request)
        except (ValueError, KeyError, TypeError, AttributeError, RecordRefused) as error:
            message = f"the request is damaged ({error})"
            raise ApiError("Invalid", message, "make it anew") from error
        try:
            await self._centre.issuer().complete_keys(read)
        except RootsRefused as error:
            lacks = "; ".join(self._lacks(read)) or error.detail
            remedy = "have it signed: leafcast keys sign REQUEST --key FILE"
            raise ApiError(error.reason, lacks, remedy) from error
        except KeysRefused as error:
            raise _refused(error) from error
        return {}

    def _ring(self) -> KeyRing:
        return self._centre.keys().ring

    def _lacks(self, request: KeysRequest) -> list[str]:
        ring = self._ring()
        found = []
        for roots, left in missing_signatures(ring, request):
            more = roots.threshold - (len(roots.keys) - len(left))
            named = ", ".join(sorted(left))
            found.append(f"version {roots.version} of the roots: {more} more of {named}")
        return found

    def _revocation(self, ring: KeyRing, key: str) -> KeyChange:
        grants = {it.key_id: it for it in (ring.record.grants if ring.record else ())}
        known = sorted({*grants, *ring.pinned.keys})
        named = [it for it in known if it.startswith(key)]
        if len(named) != 1:
            count = "no key begins" if not named else f"{len(named)} keys begin"
            raise ApiError("NotFound", f'{count} with "{key}"', "`leafcast keys list` shows them")
        (key_id,) = named
        if (grant := grants.get(key_id)) is None:
            return self._without_root(ring, key_id)
        if grant.is_revoked:
            raise ApiError("Revoked", f"{key_id} is revoked already", "there is nothing to do")
        if key_id == ring.signing.key_id:
            return KeyChange(signing=new_signer(ring.tree, self._dice), revoked=key_id)
        return KeyChange(revoked=key_id)

    def _without_root(self, ring: KeyRing, key_id: KeyId) -> KeyChange:
        """One root less; a new one in its place if its private half is here."""
        left = {key: public for key, public in ring.pinned.keys.items() if key != key_id}
        made: tuple[Signer, ...] = ()
        if key_id in {root.key_id for root in ring.roots}:
            made = (new_signer(ring.tree, self._dice),)
            left |= {root.key_id: root.public_key for root in made}
        return KeyChange(roots=left, made=made)

    def _other_roots(self, ring: KeyRing, roots: Mapping[str, str], threshold: int) -> KeyChange:
        """The roots that are named; without names those that are here are made anew."""
        wanted = threshold or None
        if roots:
            return KeyChange(roots=_named(roots), threshold=wanted)
        here = {root.key_id for root in ring.roots}
        if not here:
            message = "no root key is here, so that there is none to make anew"
            raise ApiError("RootsElsewhere", message, "name all new ones with --root FILE.pub")
        made = tuple(new_signer(ring.tree, self._dice) for _ in ring.roots)
        kept = {key: public for key, public in ring.pinned.keys.items() if key not in here}
        new = {root.key_id: root.public_key for root in made}
        return KeyChange(roots={**kept, **new}, threshold=wanted, made=made)


def _scope(grant: KeyGrant) -> str:
    """What a key may sign, and where, in a few words."""
    said = [str(grant.path)] if not grant.path.is_root else []
    said += [", ".join(each) for each in (grant.namespaces, grant.object_kinds) if each]
    return "; ".join(said) or "everything"


def _state(grant: KeyGrant, ring: KeyRing) -> str:
    if grant.is_revoked:
        return REVOKED
    return IN_USE if "ask" in grant.kinds or grant.key_id == ring.signing.key_id else ENDED


def _named(roots: Mapping[str, str]) -> Mapping[KeyId, bytes]:
    try:
        return public_keys(roots)
    except (ValueError, TypeError, AttributeError) as error:
        message = f"a public root key is damaged ({error})"
        raise ApiError("Invalid", message, "name the .pub files of `leafcast keys make`") from error


def _elsewhere(ring: KeyRing, change: KeyChange) -> ApiError:
    roots, here = ring.pinned, len(ring.roots)
    message = f"{roots.threshold} of {len(roots.keys)} root keys must sign, and {here} here"
    if change.roots is not None:
        message += (
            f", and {change.threshold or roots.threshold} of the {len(change.roots)} new ones"
        )
    remedy = "say --request FILE, have it signed by `leafcast keys sign`, then `keys publish` it"
    return ApiError("RootsElsewhere", message, remedy)


def _refused(error: KeysRefused | RootsRefused) -> ApiError:
    if isinstance(error, KeysRefused):
        return ApiError("KeysRefused", error.reason, error.remedy)
    return ApiError(error.reason, error.detail, "`leafcast keys list` shows the roots")


class ContentKeys:
    """The verbs of a daemon about these; each raises BusBroken while the centre starts."""

    def __init__(self, centre: Centre, dice: Dice) -> None:
        self._centre = centre
        self._dice = dice

    @verb("keys-rotate-fleet")
    async def rotate_fleet(self) -> Json:
        """Put another fleet key in force, and other keys of all placements; raises ApiError."""
        await self._sealing().rotate_fleet(self._dice)
        return {}

    @verb("keys-rotate-placement")
    async def rotate_placement(self, placement: str) -> Json:
        """Another key of one placement: `{placement: its title}`; raises ApiError."""
        controllers = self._sealing()
        for one in controllers.workload_spaces:
            known = one.translator.workloads.placements
            if (name := meant(placement, known)) in known:
                one.translator.rotate_key(name)
                return {"placement": short_title(name)}
        message = f'there is no placement "{placement}"'
        raise ApiError("NotFound", message, "`leafcast get epl,bp` lists those there are")

    @verb("keys-placement")
    async def of_placement(self, placement: str, key: str) -> Json:
        """The key of this id of a placement, by its mail key: `{key: in hex, or ""}`.

        Raises BadIdentity.
        """
        keys = self._centre.keys().sealing.ring.keys(check_mail_key(placement)).keys
        return {"key": next((it.key.hex() for it in keys if it.id.hex() == key), "")}

    @verb("keys-seal")
    async def seal(self) -> Json:
        """Make the first master, and issue all anew under keys that follow from it.

        `{destinations, keyless, placements, later}`: how many get the fleet key, the names of those
        whose node has no key yet, how many placements are sealed, and the names of those that
        stay in clear until they have another revision. Raises ApiError, BusBroken.
        """
        controllers = running(self._centre.controllers)
        if controllers.keys.sealing.seals:
            remedy = "for other keys: leafcast keys rotate fleet"
            raise ApiError("Sealed", "content is sealed already", remedy)
        await controllers.rotate_fleet(self._dice)
        records = [*controllers.issuer.records.values()]
        profiles = [record for record in records if isinstance(record, Profile)]
        later = [
            name
            for one in controllers.workload_spaces
            for name, issued in one.translator.placements.standing().items()
            if issued.entries and issued.sealed_under is None
        ]
        return {
            "destinations": sum(bool(profile.fleet_key) for profile in profiles),
            "keyless": sorted(p.source.name for p in profiles if not p.fleet_key),
            "placements": sum(isinstance(it, DeltaHead) for it in records) - len(later),
            "later": sorted(later),
        }

    def _sealing(self) -> Controllers:
        controllers = running(self._centre.controllers)
        if not controllers.keys.sealing.seals:
            raise ApiError("NotSealed", "content is not sealed", "run `leafcast keys seal`")
        return controllers


def _fleet_keys(ring: Keyring) -> list[_Key]:
    """The fleet keys that edges have, newest first."""
    return [
        _Key(key_id(fleet_key(master)).hex(), "fleet", state=ENDED if at else IN_USE)
        for at, master in enumerate(ring.masters[:FLEET_KEYS_MAX])
    ]
