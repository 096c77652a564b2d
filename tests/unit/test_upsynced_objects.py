"""What came up from a destination, as far as collectors are over it."""

from relay.core.collectors.upsynced import UpsyncedObjects
from schemas.objects.objects import ObjectKey
from schemas.reports.upsync import UpsyncClause, encode_copy

REPORTS = UpsyncClause("", ("configmaps",), ("scans",), ("*",))
OTHERS = UpsyncClause("", ("configmaps",), ("else",), ("*",))
ONE = ObjectKey("", "configmaps", "scans", "one")


def copy(failed="1"):
    metadata = {"name": ONE.name, "namespace": ONE.namespace}
    return encode_copy(ONE, {"kind": "ConfigMap", "metadata": metadata, "data": {"failed": failed}})


def over(*clauses):
    upsynced = UpsyncedObjects()
    upsynced.set_sources(frozenset(clauses))
    return upsynced


def test_an_object_that_no_source_names_is_not_kept():
    upsynced = over(OTHERS)
    assert not upsynced.put(ONE, copy(), 1)
    assert upsynced.over(REPORTS) == []


def test_only_another_object_is_news_and_keeps_the_time_since_it_is_so():
    upsynced = over(REPORTS)
    assert upsynced.put(ONE, copy(), 1)
    assert not upsynced.put(ONE, copy(), 2)
    [(key, held)] = upsynced.over(REPORTS)
    assert (key, held.since_ms) == (ONE, 1)
    assert upsynced.put(ONE, copy("2"), 3)
    assert upsynced.put(ONE, None, 4)
    assert not upsynced.put(ONE, None, 5)


def test_bytes_that_are_no_copy_count_as_nothing():
    upsynced = over(REPORTS)
    upsynced.put(ONE, copy(), 1)
    assert upsynced.put(ONE, b"\x93junk", 2)
    assert upsynced.over(REPORTS) == []


def test_who_let_go_of_objects_asks_for_all_of_them_again():
    upsynced = over(REPORTS, OTHERS)
    upsynced.put(ONE, copy(), 1)
    first = upsynced.sources.epoch
    upsynced.set_sources(frozenset([REPORTS]))
    assert upsynced.sources.epoch == first
    upsynced.set_sources(frozenset())
    upsynced.set_sources(frozenset([REPORTS]))
    assert upsynced.sources.epoch > first
    assert upsynced.over(REPORTS) == []
