"""What came up from a destination, as far as collectors are over it."""

from relay.core.collecting.raised import RaisedObjects
from schemas.objects import ObjectKey
from schemas.upsync import UpsyncClause, encode_copy

REPORTS = UpsyncClause("", ("configmaps",), ("scans",), ("*",))
OTHERS = UpsyncClause("", ("configmaps",), ("else",), ("*",))
ONE = ObjectKey("", "configmaps", "scans", "one")


def copy(failed="1"):
    metadata = {"name": ONE.name, "namespace": ONE.namespace}
    return encode_copy(ONE, {"kind": "ConfigMap", "metadata": metadata, "data": {"failed": failed}})


def over(*clauses):
    raised = RaisedObjects()
    raised.set_sources(frozenset(clauses))
    return raised


def test_an_object_that_no_source_names_is_not_kept():
    raised = over(OTHERS)
    assert not raised.put(ONE, copy(), 1)
    assert raised.over(REPORTS) == []


def test_only_another_object_is_news_and_keeps_the_time_since_it_is_so():
    raised = over(REPORTS)
    assert raised.put(ONE, copy(), 1)
    assert not raised.put(ONE, copy(), 2)
    [(key, held)] = raised.over(REPORTS)
    assert (key, held.since_ms) == (ONE, 1)
    assert raised.put(ONE, copy("2"), 3)
    assert raised.put(ONE, None, 4)
    assert not raised.put(ONE, None, 5)


def test_bytes_that_are_no_copy_count_as_nothing():
    raised = over(REPORTS)
    raised.put(ONE, copy(), 1)
    assert raised.put(ONE, b"\x93junk", 2)
    assert raised.over(REPORTS) == []


def test_who_let_go_of_objects_asks_for_all_of_them_again():
    raised = over(REPORTS, OTHERS)
    raised.put(ONE, copy(), 1)
    first = raised.sources.epoch
    raised.set_sources(frozenset([REPORTS]))
    assert raised.sources.epoch == first
    raised.set_sources(frozenset())
    raised.set_sources(frozenset([REPORTS]))
    assert raised.sources.epoch > first
    assert raised.over(REPORTS) == []
