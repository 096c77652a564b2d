"""Changes of an input value by value: a coverage-guided fuzzer alone seldom keeps a form whole."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import msgpack

from tests.fuzz.target import Form

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    2**64 - 1,
    0.5,
    math.inf,
    math.nan,
    "",
    "..",
    "*",
    ">",
    "/",
    "/a/b",
    "a.b",
    "_mail",
    "²",
    "9" * 5000,
    "\ud800",
    "\0",
    "a" * 64,
    "a" * 2000,
    b"",
    b"\x80" * 500,
    b"\0" * 32,
    [],
    {},
    [[]],
    {"": None},
    [0] * 300,
)
DEPTH_MAX = 8
Blindly = Callable[[bytes, int], bytes]


def mutate(form: Form, chosen: int, data: bytes, size: int, seed: int, blindly: Blindly) -> bytes:
    """The input changed at one place by its form, or blindly if it has none or by chance."""
    dice = random.Random(seed)
    if form is Form.BYTES or dice.random() < 0.3:
        return blindly(data, size)
    front, rest = data[:chosen], data[chosen:]
    try:
        said = front + _said(form, _changed(_read(form, rest), dice, blindly, 0))
    except (ValueError, TypeError, RecursionError, OverflowError, msgpack.UnpackException):
        return blindly(data, size)
    return said if len(said) <= size else blindly(data, size)


def _read(form: Form, data: bytes) -> Any:
    if form is Form.JSON:
        return json.loads(data)
    return msgpack.unpackb(data, raw=False, strict_map_key=False)


def _said(form: Form, value: Any) -> bytes:
    if form is Form.JSON:
        return json.dumps(value).encode()
    packed: bytes = msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass")
    return packed


def _changed(value: Any, dice: random.Random, blindly: Blindly, depth: int) -> Any:
    inner = isinstance(value, (list, dict)) and bool(value) and depth < DEPTH_MAX
    if inner and dice.random() < 0.85:
        return _changed_inside(value, dice, blindly, depth)
    if isinstance(value, bytes) and value and dice.random() < 0.8:
        return _changed_bytes(value, dice, blindly, depth)
    if isinstance(value, str) and dice.random() < 0.4:
        return blindly(value.encode(errors="surrogateescape"), len(value) + 8).decode(
            errors="replace"
        )
    if isinstance(value, int) and dice.random() < 0.5:
        return value + dice.choice((-1, 1, 255, 65536, -(2**32)))
    return dice.choice(ODD)


def _changed_bytes(value: bytes, dice: random.Random, blindly: Blindly, depth: int) -> bytes:
    """A record within a record is changed as one."""
    try:
        return _said(Form.MSGPACK, _changed(_read(Form.MSGPACK, value), dice, blindly, depth + 1))
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
        return blindly(value, len(value) + 16)


def _changed_inside(value: Any, dice: random.Random, blindly: Blindly, depth: int) -> Any:
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    at = dice.choice(places)
    act = dice.random()
    if act < 0.7:
        value[at] = _changed(value[at], dice, blindly, depth + 1)
    elif act < 0.8:
        del value[at]
    elif act < 0.9:
        value[at] = value[dice.choice(places)]
    elif isinstance(value, list):
        value.insert(at, dice.choice((value[at], dice.choice(ODD))))
    else:
        value[_key(dice)] = value[at]
    return value


def _key(dice: random.Random) -> str:
    return dice.choice([odd for odd in ODD if isinstance(odd, str)])
