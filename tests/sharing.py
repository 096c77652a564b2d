"""Who of several processes runs which tests, and in which order: `-n 3` and the like.

One process runs the tests of whole trees of processes, one after the other, and another those that
break such trees: what these wait for comes late on a machine that is busy. All others run the files
of all other tests meanwhile, and whoever is done takes the next file. Tests that only compute leave
no processor idle, and those with servers wait for most of their time: so of the processes one
computes while any file is left that does, and all others take those with servers. Those of API
servers, which are heavy, come last of these, and the longest of them first, so that all end at
about the same time.
"""

from collections.abc import Iterable

IN_TURN = TREES, CHAOS, SERVERS, KUBE, COMPUTED = "trees", "chaos", "servers", "kube", "computed"
WHOLE_TREES = (TREES, CHAOS)
OF_TREES = ("tests/docker/", "tests/e2e/", "tests/releases/")
OF_CHAOS = ("tests/nats/test_chaos_", "tests/nats/test_child_flood")
OF_KUBE = "tests/kube/"
OF_COMPUTED = tuple(
    f"tests/{folder}/" for folder in ("simulation", "property", "fuzz", "conformance", "unit")
)
"""Their order, too: the first have the files that take longest."""
LONGEST = ("end_to_end", "applying_faults", "kubernetes_faults", "up", "edge_faults")
"""The files of API servers that take more than two minutes."""
OF_ONE_TREE = ("tests/kube/test_customization.py", "tests/kube/test_taken_back.py")
"""They share a tree of API servers, so one process runs both."""


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def group_of(nodeid: str) -> str:
    if nodeid.startswith(OF_KUBE):
        return KUBE
    if nodeid.startswith(OF_CHAOS):
        return CHAOS
    if nodeid.startswith(OF_COMPUTED):
        return COMPUTED
    return TREES if nodeid.startswith(OF_TREES) else SERVERS


def unit_of(nodeid: str) -> str:
    """What is given to one process as a whole."""
    group, file = group_of(nodeid), file_of(nodeid)
    if group in WHOLE_TREES:
        return group
    return OF_ONE_TREE[0] if file in OF_ONE_TREE else file


def turn(nodeid: str, tests_in_file: int) -> tuple[int, int, int]:
    """The less, the sooner it is run."""
    group, file = group_of(nodeid), file_of(nodeid)
    place, longer = 0, 0
    if group == KUBE:
        longest = [f"{OF_KUBE}test_{name}.py" for name in LONGEST]
        place = longest.index(file) if file in longest else len(longest)
        longer = -tests_in_file
    elif group == COMPUTED:
        place = next(at for at, folder in enumerate(OF_COMPUTED) if file.startswith(folder))
    return IN_TURN.index(group), place, longer


def next_unit(waiting: Iterable[str], *, is_computed: bool) -> str:
    """Of what waits, in its order, what a process takes; `is_computed`: another one computes."""
    waiting = list(waiting)
    first = waiting[0]
    if first in WHOLE_TREES:
        return first
    fitting = (unit for unit in waiting if (group_of(unit) == COMPUTED) != is_computed)
    return next(fitting, first)
