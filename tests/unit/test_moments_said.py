"""A moment that a node says of its child is one that a date can have."""

import pytest

from leafcast.ask.destinations import page_of
from leafcast.ask.remote import checked_answer
from schemas.records.answer_bounds import MOMENT_MAX_MS
from schemas.values.identity import NodePath

EMEA = NodePath(("emea",))


@pytest.mark.parametrize(
    ("said", "read"),
    [(7, 7), (MOMENT_MAX_MS, MOMENT_MAX_MS), (MOMENT_MAX_MS + 1, None), (2**62, None), (-1, None)],
)
def test_what_is_no_date_is_not_known_to_either_reader(said, read):
    child = {"name": "s1", "silentSinceMs": said, "states": {}, "health": {}, "exceptions": []}
    page = {"children": [child | {"destination": True, "exact": True}], "next": ""}
    (node,), _ = page_of(EMEA, page)
    children = checked_answer(EMEA, {"children": {"s1": child}})["children"]
    assert (node["silent_since_ms"], children["s1"]["silentSinceMs"]) == (read, read)
