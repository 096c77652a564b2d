"""Seeds of tests that break things: which are run when, and how one is run again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

VARIABLE = "SEEDS"


def seeds(role: str, few: Sequence[int], many: int, block: int) -> list:
    """Parameters of a test for one role: few seeds in `make test`, the rest of many in `make long`.

    Each parameter is a block of seeds. With SEEDS=17,40 in the environment these are run alone.
    """
    if said := os.environ.get(VARIABLE):
        return [pytest.param(role, [int(seed) for seed in said.split(",")], id=f"{role}-chosen")]
    found = [pytest.param(role, few, id=f"{role}-few")]
    left = [seed for seed in range(many) if seed not in few]
    for at in range(0, len(left), block):
        these = left[at : at + block]
        found.append(pytest.param(role, these, id=f"{role}-{these[0]}", marks=pytest.mark.long))
    return found


@contextmanager
def replayable(request: pytest.FixtureRequest, role: str, seed: int, what: str) -> Iterator[None]:
    """Have whatever fails within say which seed did it, and how to see that again."""
    try:
        yield
    except BaseException as error:
        test = request.node.nodeid.partition("[")[0]
        again = f"{VARIABLE}={seed} python -m pytest -n0 '{test}' -k '{role}-chosen'"
        error.add_note(f"seed {seed} of {role}: {what}; again: {again}")
        raise


def chosen(parameters: Sequence) -> list:
    """One list of the parameters of several roles."""
    return [each for role in parameters for each in role]
