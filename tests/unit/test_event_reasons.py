"""Each word that an event or a refusal has as its reason stands in docs/operations/events.md."""

import ast
import re
from functools import cache
from pathlib import Path

from leafcast.daemon import event_log, release_events, rollout_events
from leafcast.daemon.event_log import NORMAL, WARNING, EventLog
from relay.core.effects import Noted
from relay.core.records.acceptance import REFUSALS
from schemas.values.identity import NodePath

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "events.md").read_text()
QUESTIONS = (ROOT / "docs" / "protocol" / "questions.md").read_text()
ROW = re.compile(r"^\| (`[A-Z]\w+`(?:, `[A-Z]\w+`)*) \| (.+) \|$", re.MULTILINE)
WORD = re.compile(r"([A-Z][a-z0-9]+)+")
# Which argument of which call is the reason of an event, or the code of a refusal.
OF_EVENTS = {
    "Noted": 0,
    "_note": 0,
    "note": 0,
    "_note_of_centre": 0,
    "_on_rival": 0,
    "refuse": 0,
    "_refused": 2,
    "_junk": 0,
    "StatusEvent": 1,
    "_Refused": 0,
    "RecordRefusal": 0,
    "RootsRefused": 0,
}
OF_REFUSALS = {"ApiError": 0, "AskFault": 0, "RootsRefused": 0}
_UNTOLD = event_log._TOLD_OTHERWISE | {"Expired"}
"""Others tell these; and of an ask that was too late nobody is told but who asked."""


@cache
def sources() -> tuple[str, ...]:
    packages = ("schemas", "relay", "controllers", "leafcast")
    return tuple(path.read_text() for name in packages for path in (ROOT / name).rglob("*.py"))


@cache
def calls() -> tuple[tuple[str, list[ast.expr]], ...]:
    """Each call by name: what is called, and with what."""
    return tuple(
        (callee, node.args)
        for node in nodes()
        if isinstance(node, ast.Call)
        for callee in [getattr(node.func, "id", "") or getattr(node.func, "attr", "")]
    )


@cache
def nodes() -> tuple[ast.AST, ...]:
    """What calls, and what assigns."""
    trees = (ast.walk(ast.parse(source)) for source in sources())
    return tuple(node for tree in trees for node in tree if isinstance(node, ast.Call | ast.Assign))


@cache
def constants() -> dict[str, str]:
    """Names that stand for texts."""
    found = dict[str, str]()
    for node in nodes():
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(str(text))):
                found[name] = text
            case ast.Assign([ast.Tuple(names)], ast.Tuple(texts)) if len(names) == len(texts):
                found |= {
                    name.id: text.value
                    for name, text in zip(names, texts, strict=True)
                    if isinstance(name, ast.Name) and isinstance(text, ast.Constant)
                }
    return found


def words_of(places: dict[str, int]) -> set[str]:
    """What stands at that argument of those calls: as a word, or by the name of a constant."""
    found = set[str]()
    for callee, arguments in calls():
        place = places.get(callee, len(arguments))
        match arguments[place : place + 1]:
            case [ast.Constant(str(text))]:
                found.add(text)
            case [ast.Name(name)] if name.isupper() and name in constants():
                found.add(constants()[name])
    return {word for word in found if WORD.fullmatch(word)}


def rows(text: str) -> dict[str, str]:
    return {
        word: said for words, said in ROW.findall(text) for word in re.findall(r"`(\w+)`", words)
    }


EVENTS, _, ERRORS = PAGE.partition("\n## Why a command is refused\n")


def test_every_reason_of_an_event_has_its_row():
    told = {reason for reason, _ in event_log._OF_STATE.values()} | {event_log._JOINED[0]}
    story = {reason for reason, *_ in event_log._STORY.values()}
    rollouts = {reason for _, reason in rollout_events._TOLD.values()}
    releases = {reason for _, reason in release_events._TOLD.values()}
    releases |= {reason for reason, _ in release_events._AT_NODES.values()}
    asked = {f"Request{outcome}" for outcome in ("Done", "Refused", "Ignored")}
    all_ = words_of(OF_EVENTS) | {*REFUSALS} | told | story | rollouts | releases | asked
    all_ |= {"Created", "Deleted", "Failing"}
    assert len(all_) > 60
    assert not sorted(all_ - _UNTOLD - rows(EVENTS).keys()), "docs/operations/events.md lacks these"


def test_every_row_is_of_a_word_that_the_program_says():
    source, made = (
        "".join(sources()),
        {*REFUSALS, "RequestDone", "RequestRefused", "RequestIgnored"},
    )
    gone = [word for word in rows(PAGE).keys() - made if f'"{word}"' not in source]
    assert not gone, f"no event and no refusal has these any more: {gone}"


def test_every_code_of_a_refusal_has_its_row():
    codes = words_of(OF_REFUSALS)
    assert len(codes) > 30
    known = rows(ERRORS).keys() | rows(QUESTIONS).keys()
    assert not sorted(codes - known), "docs/operations/events.md lacks these codes"


def test_what_a_node_notes_has_the_type_of_its_row():
    wrong = []
    for reason in words_of({"Noted": 0, "_note": 0}) - _UNTOLD:
        log = EventLog()
        log.noted(NodePath(), Noted(reason, "it", "said"), 0)
        (event,) = log.since(0)
        kinds = rows(EVENTS)[reason].partition(" |")[0].split(", ")
        if event["type"] not in kinds:
            wrong.append((reason, event["type"], kinds))
    assert not wrong
    assert {NORMAL, WARNING} == {said.partition(" |")[0] for said in rows(EVENTS).values()} - {
        "Normal, Warning"
    }
