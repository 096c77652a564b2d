"""Who of several processes runs which tests, and in which order: `-n 3` and the like.

Two processes begin with the tests of whole trees of processes, each with its own, one test after
the other: what these wait for comes late on a machine that is busy. All others run the files of all
other tests meanwhile, and whoever is done takes the next file. Tests that only compute leave no
processor idle, and those with servers wait for most of their time: so of the processes one computes
while any file is left that does, and all others take those with servers. Those of API servers,
which are heavy, come last of these. The longest files come first, so that all processes end at
about the same time.
"""

from collections.abc import Iterable

TREES, MORE_TREES, SERVERS, KUBE, COMPUTED = "trees", "more trees", "servers", "kube", "computed"
IN_TURN = (TREES, MORE_TREES, SERVERS, KUBE, COMPUTED)
WHOLE_TREES = (TREES, MORE_TREES)
OF_TREES = "tests/e2e/"
OF_MORE_TREES = (
    *("tests/docker/", "tests/releases/", "tests/nats/test_chaos_", "tests/nats/test_child_flood"),
    *("tests/e2e/test_growth", "tests/e2e/test_on_trios", "tests/e2e/test_trios"),
)
"""Those of containers, of two releases and of trios, and those that break what they run."""
OF_KUBE = "tests/kube/"
OF_COMPUTED = tuple(
    f"tests/{folder}/" for folder in ("simulation", "property", "fuzz", "conformance", "unit")
)
"""Their order, too: the first have the files that take longest."""
LONGEST = (
    *(
        f"{OF_KUBE}test_{name}.py"
        for name in (
            *("end_to_end", "documents", "placement_finalizer", "applying_faults", "up", "claims"),
            *("install", "edge_faults", "customization", "kubernetes_faults", "bed"),
            *("lost_stores", "recreated_and_moved", "one_centre", "live_health"),
        )
    ),
    *(
        f"tests/nats/test_{name}.py"
        for name in (
            *("power_cuts", "trio_takeover", "trio_servers", "damaged_stores", "older_disks"),
            *("rollout", "hostile_child"),
        )
    ),
)
"""The files that take longest, of each group the longest first."""
EACH_BY_ITSELF = tuple(
    f"tests/nats/test_{name}"
    for name in ("trio_", "power_cuts", "damaged_stores", "older_disks", "centre_machines")
)
"""Each of their tests starts all that it needs and takes long, so it goes to whoever is free."""
OF_ONE_TREE = ("tests/kube/test_customization.py", "tests/kube/test_taken_back.py")
"""They share a tree of API servers, so one process runs both."""


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def group_of(nodeid: str) -> str:
    if nodeid.startswith(OF_MORE_TREES):
        return MORE_TREES
    if nodeid.startswith(OF_TREES):
        return TREES
    if nodeid.startswith(OF_KUBE):
        return KUBE
    return COMPUTED if nodeid.startswith(OF_COMPUTED) else SERVERS


def unit_of(nodeid: str) -> str:
    """What is given to one process as a whole."""
    group, file = group_of(nodeid), file_of(nodeid)
    if group in WHOLE_TREES:
        return group
    if file.startswith(EACH_BY_ITSELF):
        return nodeid
    return OF_ONE_TREE[0] if file in OF_ONE_TREE else file


def turn(nodeid: str) -> tuple[int, int]:
    """The less, the sooner it is run."""
    group, file = group_of(nodeid), file_of(nodeid)
    if group == COMPUTED:
        place = next(at for at, folder in enumerate(OF_COMPUTED) if file.startswith(folder))
    else:
        place = LONGEST.index(file) if file in LONGEST else len(LONGEST)
    return IN_TURN.index(group), place


def next_unit(waiting: Iterable[str], *, is_computed: bool) -> str:
    """Of what waits, in its order, what a process takes; `is_computed`: another one computes."""
    waiting = list(waiting)
    first = waiting[0]
    if first in WHOLE_TREES:
        return first
    fitting = (unit for unit in waiting if (group_of(unit) == COMPUTED) != is_computed)
    return next(fitting, first)
