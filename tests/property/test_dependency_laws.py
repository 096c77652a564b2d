"""Laws of which placement waits for which."""

from hypothesis import given
from hypothesis import strategies as st

from controllers.core.workloads.dependencies import Dependencies
from schemas.objects.annotations import DEPENDS_ON

NAMES = ("a", "b", "c", "d", "e")
edits = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.one_of(st.none(), st.sets(st.sampled_from(NAMES), max_size=3))
    ),
    max_size=12,
)


def seen(held):
    return {name: (held.of(name), held.circle(name)) for name in NAMES}


@given(edits)
def test_nothing_waits_for_itself_by_way_of_others_and_what_changes_is_named(steps):
    held, said = Dependencies(), {}
    for name, others in steps:
        before = seen(held)
        if others is None:
            said.pop(name, None)
            touched = held.remove(name)
        else:
            said[name] = others - {name}
            touched = held.put(name, {DEPENDS_ON: ", ".join(sorted(said[name]))})
        after = seen(held)
        changed = {one for one in NAMES if before[one] != after[one]} - {name}
        assert changed <= touched
        # Whoever waits for it is told that it came or went.
        assert {one for one, its in said.items() if name in its} - {name} <= touched
        for one, (waits_for, circle) in after.items():
            assert set(waits_for) <= said.get(one, set())
            assert set(waits_for) | set(circle) >= said.get(one, set())
        order = held.ordered(NAMES)
        assert sorted(order) == list(NAMES)
        for one in NAMES:
            assert all(order.index(other) < order.index(one) for other in after[one][0])
