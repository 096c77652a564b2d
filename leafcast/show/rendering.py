"""What became of an object at a destination, field by field, and who said what was put in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.records.properties import PARAMETER
from schemas.values.wording import some_of

STEPS_MAX = 3
UNSAID_SHOWN_MAX = 20
_STEP = re.compile(r"[^.\[\]]+(?:\[[^\]]*\])*|\[[^\]]*\]")

Form = Mapping[str, Any]


def rendering_lines(form: Form) -> Iterator[str]:
    """What each field says and what it was, below that its properties; what is not sent."""
    if not form["changes"]:
        yield "nothing is put into it here"
    for change in form["changes"]:
        by = f" by {change['source']}" if change["source"] else ""
        after = change["after"] if by else json.dumps(change["after"], ensure_ascii=False)
        before = change["before"] if by else json.dumps(change["before"], ensure_ascii=False)
        said = f"    from {before}" if before != after else ""
        nowhere = "" if change["places"] else ", which leads nowhere in it"
        yield f"{shortened(change['path'])}: {after}{said}{by}{nowhere}"
        if change["names"]:
            told = (_told(name, form["properties"][name]) for name in change["names"])
            yield "  " + "     ".join(told)
    for reason, paths in form["taken_off"].items():
        yield f"not sent, as {reason}:"
        yield from (f"  {path}" for path in paths)
    if form["nulls"]:
        yield "left out there, as it is null and its definition does not let it be:"
        yield from (f"  {path}" for path in form["nulls"])
    if form["unsaid"]:
        yield "said by nobody, and left out where a cluster does not know it:"
        yield f"  {some_of(form['unsaid'], UNSAID_SHOWN_MAX)}"


def shortened(path: str) -> str:
    """The last steps of a field's path."""
    steps = [found[0] for found in _STEP.finditer(path)]
    return path if len(steps) <= STEPS_MAX else "…" + ".".join(steps[-STEPS_MAX:])


def _told(asked: str, said: Sequence[Form]) -> str:
    """Who says a property; whom that hides."""
    name = asked.removeprefix(PARAMETER)
    if not said:
        return f"{name}  nobody says it, so it stays as it is written"
    first, *others = said
    differ = (other for other in others if other["value"] != first["value"])
    hidden = ", ".join(f"{_short(first, other)} {name}={other['value']}" for other in differ)
    return f"{name}  {first['origin']}" + (f" (hides {hidden})" if hidden else "")


def _short(first: Form, other: Form) -> str:
    """Who is hidden; of the same speaker only in what."""
    whose = str(first["origin"]).removeprefix(str(first["what"]))
    return str(other["what"]) if str(other["origin"]).endswith(whose) else str(other["origin"])
