"""Between bytes and objects: what a node and its syncer make of an object that is customized."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relay.core.destination.customized_forms import NotCustomized, ValuesUsed
from relay.objects.customization import CustomizationFailed, Customized, SentCustomizer, customize
from schemas.content import blobs
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from schemas.values.identity import ContentHash
from schemas.values.refusals import CodecError

Customizing = Callable[
    [ObjectKey, bytes, bytes | None, Mapping[str, str], str],
    Customized,
]
"""As `customized`."""
BYTES_OF_STEP = 8
"""To open so many bytes and to write them takes a step."""


def customized_address(
    key: ObjectKey, plain: bytes, by: bytes | None, values: Mapping[str, str], destination: str
) -> tuple[ContentHash, ValuesUsed, int]:
    """The address of what an object becomes, the properties it asked for, and its steps.

    As relay.core.destination.customized_forms.Customize.
    """
    try:
        made = customized(key, plain, by, values, destination)
        return (*address_of(made), made.steps + len(plain) // BYTES_OF_STEP)
    except CustomizationFailed as error:
        raise NotCustomized(str(error.fault)) from error
    except CodecError as error:
        raise NotCustomized(str(error)) from error


def address_of(made: Customized) -> tuple[ContentHash, ValuesUsed]:
    """Its address, and what it asked for; raises NotCustomized if too large, and CodecError."""
    data = codec.canonical(made.object)
    if len(data) > blobs.OBJECT_MAX_BYTES:
        said = f"{len(data)} bytes once it is customized, at most {blobs.OBJECT_MAX_BYTES}"
        raise NotCustomized(f"{said}; say less in the properties")
    used = tuple(sorted(made.used.items()))
    return codec.address(blobs.OBJECT, data), used


def customized(
    key: ObjectKey, plain: bytes, by: bytes | None, values: Mapping[str, str], destination: str
) -> Customized:
    """What an object becomes by its Customizer; raises CustomizationFailed, and CodecError."""
    obj = codec.unpack(plain, blobs.OBJECT_MAX_BYTES)
    if not isinstance(obj, Mapping) or not isinstance(obj.get("metadata"), Mapping):
        raise CodecError("", "no object")
    customizer = None if by is None else SentCustomizer.decode(by)
    return customize(key, obj, customizer, values, destination)
