"""Vectors of CEL: what expressions give, where they fail, and what they may cost."""

from __future__ import annotations

from relay.objects.expressions.bounds import TooCostly, check_all, extent_of, steps_of, weight_of
from relay.objects.expressions.cel import (
    VARIABLES,
    CompiledExpression,
    EvaluationFailed,
    ExpressionRefused,
    ExpressionValues,
)
from schemas.values import codec
from tests.conformance.forms import Case, Json

ABOUT = (
    "An expression over `obj`, whose status is `returned.status` as well, as one of health: it "
    "gives a value, fails, or is refused: as it is written, or as too costly over this object. "
    "`steps` are what all costs come to, as the formula says."
)
GIVEN: dict[str, Json] = {
    "obj": {
        "apiVersion": "v1",
        "kind": "Widget",
        "metadata": {"name": "n"},
        "i": 1,
        "h": 2.5,
        "n": None,
        "s": "üx",
        "l": [1, 2, 3],
        "m": {"a": 1},
        "e": [],
        "big": 2**63 - 1,
        "t": "2026-01-02T03:04:05Z",
        "status": {"phase": "Running", "count": 3},
    },
}
_GIVES: tuple[tuple[str, Json], ...] = (
    ("obj.i == 1.0", True),
    ("obj.i < obj.h", True),
    ("2.0 in obj.l", True),
    ("uint(3) == 3", True),
    ("9007199254740993 == 9007199254740992.0", True),
    ("obj.i == '1'", False),
    ("obj.i == true", False),
    ("-7 / 2", -3),
    ("-7 % 3", -1),
    ("size(obj.s)", 3),
    ("size('\U0001f44d')", 4),
    ("size(obj.m)", 1),
    ("has(obj.missing)", False),
    ("has(obj.n)", True),
    ("obj.n == null", True),
    ("obj.missing == 1 || true", True),
    ("obj.missing == 1 && false", False),
    ("'a' in obj.m", True),
    ("obj.l[0]", 1),
    ("obj['i']", 1),
    ("obj.l.map(x, x * 2)", [2, 4, 6]),
    ("obj.l.map(x, x > 1, x * 2)", [4, 6]),
    ("obj.l.filter(x, x > 1)", [2, 3]),
    ("obj.l.exists(x, x == 9)", False),
    ("obj.l.exists_one(x, x == 1)", True),
    ("obj.e.all(x, x > 1)", True),
    ("obj.m.map(k, k)", ["a"]),
    ("[1, 0].exists(x, 1 / x == 1)", True),
    ("timestamp(obj.t) + duration('1h')", "2026-01-02T04:04:05Z"),
    ("timestamp(obj.t).getMonth()", 0),
    ("timestamp(obj.t).getDayOfMonth()", 1),
    ("timestamp(obj.t).getDate()", 2),
    ("timestamp(obj.t).getDayOfWeek()", 5),
    ("timestamp(obj.t).getHours()", 3),
    ("duration('90m').getMinutes()", 90),
    ("duration('90m')", "5400s"),
    ("string(1.0)", "1"),
    ("string(1.5)", "1.5"),
    ("string(duration('90s'))", "1m30s"),
    ("int('7')", 7),
    ("int(2.9)", 2),
    ("int(-2.9)", -2),
    ("double('1.5')", 1.5),
    ("string(bytes('a'))", "a"),
    ("type(obj.n)", "null_type"),
    ("type(1) == 'int'", False),
    ("'abc'.matches('b')", True),
    ("'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')", True),
    ("obj.m == {'a': 1}", True),
    ("obj.l + [4]", [1, 2, 3, 4]),
    ("'a' + 'b'", "ab"),
    ("obj.i == 1 ? 'one' : 'more'", "one"),
    ("-9223372036854775808", -(2**63)),
    ("0x10", 16),
    ("returned.status.phase", "Running"),
)
_FAILS = (
    "obj.i + obj.h",
    "obj.big + 1",
    "7 / 0",
    "obj.missing",
    "obj.l[5]",
    "obj.l[-1]",
    "obj.i ? 1 : 2",
    "obj.n < 1",
    "obj.s + 1",
    "[0, 1].exists(x, 1 / x == 1)",
    "bytes('a')",
    "{1: 2}",
    "timestamp('nope')",
    "1 < 2 < 3",
)
_REFUSED = (
    "obj.i ==",
    "nothing.here",
    "obj.s.lowerAscii()",
    "string(true)",
    "obj.?missing",
    "cel.bind(x, 1, x)",
    "9223372036854775808",
    "timestamp(obj.t).getHours('UTC', 1, 2) == ",
    "obj.l.map(x, obj.l.map(y, obj.l.map(z, z)))",
    "obj.l.exists(x, 'a'.matches('a'))",
    "'a'.matches('(')",
    "+".join(["1"] * 600),
)


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    numbers = {"obj": {**GIVEN["obj"], "l": list(range(300))}}
    large = {"obj": {**GIVEN["obj"], "l": list(range(3000))}}
    return [
        *(_of(text, "gives", value=value) for text, value in _GIVES),
        *(_of(text, "fails") for text in _FAILS),
        *(_of(text, "refused") for text in _REFUSED),
        Case(
            "a loop over 300 items",
            "L8",
            {**numbers, "cel": "obj.l.all(x, x >= 0)"},
            {"verdict": "gives"},
        ),
        Case(
            "a loop in a loop over 300 items",
            "L8",
            {**numbers, "cel": "obj.l.all(x, obj.l.exists(y, y == x))"},
            {"verdict": "too costly"},
        ),
        Case(
            "a loop over 3,000 items",
            "L8",
            {**large, "cel": "obj.l.all(x, x >= 0)"},
            {"verdict": "too costly"},
        ),
    ]


def _of(text: str, verdict: str, **expected: Json) -> Case:
    name = text if len(text) < 60 else f"{text[:40]}... of {len(text)} characters"
    return Case(name, "L8", {"cel": text}, {"verdict": verdict, **expected})


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    try:
        expression = CompiledExpression(
            given["cel"], {name: VARIABLES[name] for name in ("obj", "returned")}
        )
    except ExpressionRefused:
        return {"verdict": "refused"}
    # As canonical bytes are read: an integral double is an integer.
    obj = codec.unpack(codec.canonical(given["obj"]), lists=True)
    largest, count = extent_of([obj])
    size = weight_of(len(codec.pack(obj)), count)
    steps = steps_of([expression.shape], largest, size)
    try:
        check_all([expression.shape], largest, size)
    except TooCostly:
        return {"verdict": "too costly", "steps": steps}
    values = ExpressionValues()
    values.begin()
    values.put("obj", obj)
    values.put("returned", {"status": obj["status"]})
    try:
        return {"verdict": "gives", "value": expression.value(values), "steps": steps}
    except EvaluationFailed:
        return {"verdict": "fails", "steps": steps}
