"""The state of an object's one copy, sealed on its way up: only the centre has the placement's key.

It is bound to its object and its destination, so that a relay can neither read it nor say another.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.content.sealing import KEY_ID_BYTES, SealingKey, named
from schemas.reports.reports import ObjectResult
from schemas.values.refusals import BlobRefused
from schemas.values.wire import encode, replace

_STATE = "state"
_SEALED = b"\xc1"
"""Before what is sealed; no msgpack begins with it, so a clear state is told from a sealed one."""


def sealed_state(result: ObjectResult, key: SealingKey) -> ObjectResult:
    """The same with its state for the centre alone; equal states give equal bytes."""
    if result.status is None:
        return result
    sealed = key.seal(_STATE, result.status, _bound(result))
    return replace(result, status=_SEALED + key.id + sealed)


def opened_state(result: ObjectResult, keys: Sequence[SealingKey]) -> ObjectResult:
    """The same with its state as it was said; `keys` are the placement's, if it has any.

    Raises BlobRefused of one that none of them sealed, or that was said in clear.
    """
    said = result.status
    if said is None or not keys:
        return result
    if not said.startswith(_SEALED):
        raise BlobRefused("", "a state in clear, of a placement that is sealed")
    key_id, sealed = said[1 : 1 + KEY_ID_BYTES], said[1 + KEY_ID_BYTES :]
    return replace(result, status=named(keys, key_id).unseal(_STATE, sealed, _bound(result)))


def _bound(result: ObjectResult) -> bytes:
    said = [result.destination, result.key]
    # What is said beside the state is said by its edge alone, too.
    return encode([*said, result.content, result.generation] if result.content else said)
