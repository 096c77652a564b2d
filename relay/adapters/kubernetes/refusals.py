"""An API server's Status as a space's own errors, in the server's words.

What a Secret holds is taken out of them: some refusals quote the value that they refuse.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from relay.space_errors import Conflict, FieldConflict, SpaceError
from relay.space_port import Object
from schemas.objects.objects import kind_name
from schemas.values.fields import mappings_at, walk

NOT_FOUND, FORBIDDEN, UNAUTHORIZED = "NotFound", "Forbidden", "Unauthorized"
EXPIRED, CONFLICT, UNAVAILABLE = "Expired", "Conflict", "ServiceUnavailable"
ALREADY_EXISTS, TOO_MANY = "AlreadyExists", "TooManyRequests"
NOT_ALLOWED, TOO_LARGE, INVALID = "MethodNotAllowed", "RequestEntityTooLarge", "Invalid"

_REASONS = {
    400: "BadRequest",
    401: UNAUTHORIZED,
    403: FORBIDDEN,
    404: NOT_FOUND,
    405: NOT_ALLOWED,
    406: "NotAcceptable",
    409: CONFLICT,
    410: EXPIRED,
    413: TOO_LARGE,
    415: "UnsupportedMediaType",
    422: INVALID,
    429: TOO_MANY,
    500: "InternalError",
    503: UNAVAILABLE,
    504: "Timeout",
}
_FIELD_CONFLICT = "FieldManagerConflict"
_MANAGER = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"')
_MALFORMED = ("failed to create typed patch object", "failed to convert new object")
# The limit of what keeps the objects, which the server hands on as a fault of its own.
_OVER_LIMIT = ("request is too large", "larger than max")
_LEFT_OUT, _REDACTED = "…", "<redacted>"
_SECRET_LETTERS_MIN = 3
_MESSAGE_LETTERS_MAX = 4096
# How a specification differs from what is there, over many lines: of today, and of older servers.
_DIFFERENCE = re.compile(r"\n[ \t\xa0]*(?:@@ |core\.\w+\{).*", re.DOTALL)
_VALUE_LETTERS_MAX = 40
_QUOTING = "Invalid value: "
# What tells where a quoted value ends: it is JSON, or Go's form of a structure on older servers.
_VALUE_PARTS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[{\[(]|[}\])]|: ', re.DOTALL)


def refusal(code: int, status: object, said: str = "") -> SpaceError:
    """What a response other than success says; `status` is its body, a Status if all is well."""
    form = status if isinstance(status, Mapping) else {}
    message = form.get("message")
    if not isinstance(message, str) or not message:
        message = said or f"the server answered with HTTP status {code}"
    message = _without_long_values(" ".join(_DIFFERENCE.sub("", message).split()))[
        :_MESSAGE_LETTERS_MAX
    ]
    given = form.get("reason")
    reason = given if isinstance(given, str) and given not in ("", "Unknown") else ""
    if code == 500 and message.startswith(_MALFORMED):
        # Fields that the kind has not, or has of another type: no fault of the server.
        reason = "Invalid"
    elif code == 500 and any(said in message for said in _OVER_LIMIT):
        reason = TOO_LARGE
    reason = reason or _REASONS.get(code, "InternalError")
    if reason == "Gone":
        reason = EXPIRED
    if reason == CONFLICT:
        managers = _managers(form.get("details"))
        if managers:
            return FieldConflict(CONFLICT, message, managers)
        return Conflict(CONFLICT, message)
    return SpaceError(reason, message)


def no_type(group: str, resource: str) -> str:
    """That a server does not know a kind, in the words of kubectl."""
    return f'the server doesn\'t have a resource type "{kind_name(group, resource)}"'


def names_another(error: SpaceError) -> bool:
    """Whether a wish was refused for the uid that it names: of an update it is said so."""
    return error.reason == INVALID and "metadata.uid: " in error.message


def without_secrets(error: SpaceError, obj: Object | None) -> SpaceError:
    """The same error, with nothing in it of what the object holds if that is a Secret."""
    if obj is None or obj.get("kind") != "Secret":
        return error
    message = error.message
    for text in sorted(set(_secret_texts(obj)), key=len, reverse=True):
        message = message.replace(text, _REDACTED)
    if message == error.message:
        return error
    if isinstance(error, FieldConflict):
        return FieldConflict(error.reason, message, error.managers)
    return type(error)(error.reason, message)


def _without_long_values(message: str) -> str:
    """The message without whole templates that it quotes: the reason stands behind them."""
    before, *quoting = message.split(_QUOTING)
    said = [before]
    for text in quoting:
        end = _end_of_value(text)
        said.append(text if end <= _VALUE_LETTERS_MAX else _LEFT_OUT + text[end:])
    return _QUOTING.join(said)


def _end_of_value(text: str) -> int:
    """Where a value that begins here ends; 0 if that is not to be seen."""
    depth = 0
    for part in _VALUE_PARTS.finditer(text):
        if part[0] == ": " and not depth:
            return part.start()
        if part[0] in "{[(":
            depth += 1
        elif part[0] in "}])":
            depth -= 1
    return 0


def _managers(details: object) -> dict[str, str]:
    managers = {}
    for cause in mappings_at(details, "causes"):
        if cause.get("reason") == _FIELD_CONFLICT:
            named = _MANAGER.search(str(cause.get("message")))
            managers[str(cause.get("field"))] = named[1] if named else "another manager"
    return managers


def _secret_texts(obj: Mapping[str, Any]) -> Iterator[str]:
    """Each value of a Secret as it may be quoted: as written, and as decoded."""
    for _, value in walk([obj.get("data"), obj.get("stringData")]):
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            continue
        text = str(value)
        forms = [text]
        try:
            forms.append(base64.b64decode(text, validate=True).decode())
        except (binascii.Error, UnicodeDecodeError, ValueError):
            forms.append(base64.b64encode(text.encode(errors="replace")).decode())
        yield from (form for form in forms if len(form) >= _SECRET_LETTERS_MIN)
