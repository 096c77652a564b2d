"""A placement collects so many values and no more; who finds no room is named."""

from controllers.core.workloads.collectors import COLLECTED_VALUES_MAX, Collectors
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Expression, Program

WIDE = Program("wide", select=tuple(Expression(f"c{at}", "obj.kind") for at in range(9)))
OTHER = Program("a", select=(Expression("c", "obj.kind"),))


def over(count, *programs):
    return {ObjectKey("", "configmaps", "many", f"c{at}"): programs for at in range(count)}


def test_what_is_within_the_budget_is_collected():
    found = over(COLLECTED_VALUES_MAX // 12, WIDE, OTHER)
    assert Collectors.within_budget(found) == (found, ())


def test_a_collector_that_finds_no_room_is_left_out_and_named_with_a_remedy():
    count = COLLECTED_VALUES_MAX // 10
    kept, [said] = Collectors.within_budget(over(count, WIDE, OTHER))
    assert kept == over(count, OTHER), "in the order of their names"
    assert said.startswith("StatusCollector wide is left out: 10 expressions over 10000 objects")
    assert "of 100000 for a placement 80000 are left; select fewer objects" in said
