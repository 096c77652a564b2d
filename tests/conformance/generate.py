"""Writes docs/conformance/*.json anew: python -m tests.conformance.generate."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from tests.conformance.forms import Case, Json

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "conformance"
SUITES = (
    "content",
    "records",
    "snapshots",
    "links",
    "reports",
    "rows",
    "questions",
    "sealing",
    "cluster",
    "health",
    "expressions",
    "customization",
    "joining",
)


def path_of(suite: str) -> Path:
    return FOLDER / f"{suite}.json"


def cases_of(suite: str) -> Sequence[Case]:
    cases: Callable[[], Sequence[Case]] = import_module(f"tests.conformance.{suite}").cases
    return cases()


def answer_of(suite: str) -> Callable[[Json], Json]:
    answer: Callable[[Json], Json] = import_module(f"tests.conformance.{suite}").answer
    return answer


def given_of(suite: str) -> Json:
    """What goes into each case of a suite that does not say otherwise."""
    return json.loads(json.dumps(getattr(import_module(f"tests.conformance.{suite}"), "GIVEN", {})))


def text_of(suite: str) -> str:
    """The whole file of a suite: what each case says goes in, and what our program makes of it."""
    answer, common, listed = answer_of(suite), given_of(suite), []
    for case in cases_of(suite):
        given: Json = json.loads(json.dumps(case.given, sort_keys=True))
        out = answer({**common, **given})
        listed.append({"name": case.name, "rule": case.rule, "in": given, "out": out})
    about = import_module(f"tests.conformance.{suite}").ABOUT
    return _said({"about": about, "given": common, "cases": listed})


def _said(value: Json) -> str:
    """JSON with a line for each case's parts, so that a change is a change of few lines."""
    lines = ["{", f' "about": {json.dumps(value["about"])},']
    lines.append(f' "given": {json.dumps(value["given"], sort_keys=True)},')
    lines.append(' "cases": [')
    for case in value["cases"]:
        lines.append(f'  {{"name": {json.dumps(case["name"])}, "rule": "{case["rule"]}",')
        for part, end in (("in", ","), ("out", "},")):
            lines.append(f'   "{part}": {json.dumps(case[part], sort_keys=True)}{end}')
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([*lines, " ]", "}", ""])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for suite in SUITES:
        path_of(suite).write_text(text_of(suite))
        print(f"{path_of(suite).relative_to(ROOT)}: {len(cases_of(suite))} cases")


if __name__ == "__main__":
    main()
