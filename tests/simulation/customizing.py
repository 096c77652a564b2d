"""Objects that are customized, in small: what one becomes depends on the tier of its edge."""

from __future__ import annotations

from collections.abc import Mapping

from relay.core.destination.customized_forms import NotCustomized, ValuesUsed
from relay.objects.customization import Customized
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from schemas.values.identity import ContentHash
from tests.simulation.sealing import marked

TIER, WITHOUT, RAW = "tier", "without", "raw"
FORM = "form"
"""In a customized object: for which tier it is, that it is for none, or that it is as written."""
STEPS = 25_000
"""Of each object: a turn has room for one."""
NEEDS = "needs"
"""What is called so cannot become anything where there is no tier."""


def is_template(name: str) -> bool:
    return name[0] in ("c", "f") or name.startswith(NEEDS)


def kind_of(name: str) -> str:
    return blobs.TEMPLATE if is_template(name) else blobs.OBJECT


def form_of(reference: Reference, tier: str | None) -> ContentHash:
    """What becomes of a content, by its address in clear: another one, if it is customized."""
    if reference.kind != blobs.TEMPLATE:
        return ContentHash(marked(reference))
    return codec.address(blobs.OBJECT, codec.canonical([reference.address, tier or WITHOUT]))


def customized_here(
    key: ObjectKey, plain: bytes, _by: bytes | None, values: Mapping[str, str], _where: str
) -> Customized:
    """As relay.syncer.customized_content.customized: the object that has the form's address."""
    tier = values.get(TIER)
    form = RAW if key.name.startswith(NEEDS) and tier is None else tier or WITHOUT
    return Customized({**codec.unpack(plain, blobs.OBJECT_MAX_BYTES), FORM: form})


def customize(
    key: ObjectKey, plain: bytes, _by: bytes | None, values: Mapping[str, str], _where: str
) -> tuple[ContentHash, ValuesUsed, int]:
    """As relay.core.destination.customized_forms.Customize."""
    tier = values.get(TIER)
    if key.name.startswith(NEEDS) and tier is None:
        raise NotCustomized(f"spec: no property {TIER}")
    address = codec.address(blobs.TEMPLATE, plain)
    return form_of(Reference(blobs.TEMPLATE, address, len(plain)), tier), ((TIER, tier),), STEPS
