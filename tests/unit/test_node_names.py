"""A node goes by its path and by its SyncTarget's name, or one is told which is meant."""

import asyncio

import pytest

from leafcast.ask.failures import CallFailed
from leafcast.ask.node_names import (
    NamedNode,
    did_you_mean,
    path_meant,
    targets_meant,
    with_meant,
)

NODES = [
    NamedNode("/region-1", ""),
    NamedNode("/region-1/site-1", "region-1-site-1"),
    NamedNode("/region-1/site-2", "the-second"),
]


class Session:
    def __init__(self, failure=None):
        self.failure, self.asked = failure, []

    async def call(self, verb, **arguments):
        self.asked.append(verb)
        if self.failure:
            raise self.failure
        return {"nodes": [{"path": it.path, "syncTarget": it.target} for it in NODES]}


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("/region-1/site-1", "/region-1/site-1"),
        ("region-1-site-1", "/region-1/site-1"),
        ("the-second", "/region-1/site-2"),
        ("region-1-site-2", "/region-1/site-2"),
        ("region-1", "/region-1"),
        ("region-9", ""),
    ],
)
def test_a_node_is_meant_by_either_of_its_names(word, path):
    assert path_meant(word, NODES) == path


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("/region-1-site-1", 'did you mean "/region-1/site-1" (region-1-site-1)?'),
        ("/region-1/site1", 'did you mean "/region-1/site-1" (region-1-site-1)?'),
        ("the-secnd", 'did you mean "/region-1/site-2" (the-second)?'),
        ("/regoin-1", 'did you mean "/region-1"?'),
        ("/elsewhere", ""),
    ],
)
def test_what_names_no_node_is_answered_by_the_one_it_nearly_names(word, meant):
    assert did_you_mean(word, NODES) == meant


def failed(code, message):
    return CallFailed("ask", code, message, "see leafcast node list")


def meant(failure, session=None):
    return asyncio.run(with_meant(session or Session(), failure))


def test_a_failure_for_a_node_that_is_not_there_names_the_one_that_is_meant():
    said = meant(failed("NoSuchNode", "there is no node /region-1-site-1"))
    assert said.remedy == 'did you mean "/region-1/site-1" (region-1-site-1)?'
    assert (said.code, said.message) == ("NoSuchNode", "there is no node /region-1-site-1")
    said = meant(failed("NotFound", "node /region-1/site-9: there is no such node"))
    assert "/region-1/site-" in said.remedy


def test_other_failures_stay_as_they_are():
    kept = [
        failed("Unreachable", "/region-1-site-1 cannot be reached"),
        failed("NotFound", "no object is there"),
        failed("NoSuchNode", "there is no node /far-away/x"),
        failed("NotFound", "at /region-1/site-1: no such object"),
    ]
    assert [meant(failure) for failure in kept] == kept
    unknown = failed("NoSuchNode", "there is no node /region-1-site-1")
    away = Session(failed("Timeout", "no answer"))
    assert meant(unknown, away) is unknown


def test_synctargets_go_by_the_paths_of_their_nodes():
    paths = ["/region-1", "/region-1/site-2"]
    assert targets_meant(paths, NODES) == {"/region-1/site-2": "the-second"}
