"""A patch says no more than what changed, and leads from one view to the next."""

from hypothesis import given
from hypothesis import strategies as st

from leafcast.ui.patches import DEPTH_MAX, TEXT_MAX_CHARACTERS, harmless, patch


def patched(view, said):
    """As the page does it (`patched` in live.js)."""
    after = {**view, **said.get("set", {})}
    for name in said.get("drop", ()):
        del after[name]
    for name, rows in said.get("rows", {}).items():
        known = {item["id"]: item for item in view[name]}
        known |= {item["id"]: item for item in rows["items"]}
        after[name] = [known[it] for it in rows.get("order", known)]
    return after


ITEMS = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("abcde"), "count": st.integers(0, 2)}),
    unique_by=lambda it: it["id"],
)
VIEWS = st.dictionaries(st.sampled_from(["rows", "head", "more"]), ITEMS | st.integers(0, 2))


@given(VIEWS, VIEWS)
def test_a_patch_leads_from_the_former_view_to_the_present_one(before, after):
    assert patched(before, patch(before, after)) == after


@given(VIEWS)
def test_what_did_not_change_says_nothing(view):
    assert patch(view, dict(view)) == {}


def test_of_many_rows_one_is_sent_if_one_changed():
    rows = [{"id": str(at), "count": 0} for at in range(200)]
    after = [*rows[:7], {"id": "7", "count": 1}, *rows[8:]]
    said = patch({"rows": rows}, {"rows": after})
    assert said == {"rows": {"rows": {"items": [{"id": "7", "count": 1}]}}}


def test_rows_that_share_an_id_are_sent_whole():
    twice = [{"id": "a"}, {"id": "a"}]
    assert patch({"rows": []}, {"rows": twice}) == {"set": {"rows": twice}}


def test_texts_cannot_steer_or_turn_around_and_are_bounded():
    said = harmless({"a\x1b[2J": ["\u202egnp.exe", "x" * (TEXT_MAX_CHARACTERS + 1)], "n": 3})
    assert said == {"a[2J": ["gnp.exe", "x" * TEXT_MAX_CHARACTERS + "…"], "n": 3}


def test_what_is_nested_without_end_is_cut():
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    said, depth = harmless(deep), 0
    while said:
        said, depth = said[0], depth + 1
    assert depth <= DEPTH_MAX + 1
