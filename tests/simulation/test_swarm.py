"""A swarm of seeds holds the relay to its laws, and planted faults do not survive it."""

import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from controllers.core.rollout import decision, layers, wave_health
from controllers.core.translation import translate
from relay.core.collectors import turns
from tests.simulation import planned, soak
from tests.simulation import run as runs
from tests.simulation.assumptions import ASSUMPTIONS
from tests.simulation.faults import NO_FAULTS, Faults
from tests.simulation.laws import CONVERGENCE, KEPT_PLACES, PLANNED, TAKEN_BACK, WAVES
from tests.simulation.mutants import MUTANTS, kill
from tests.simulation.oracle import Oracle
from tests.simulation.replay import again, end_of
from tests.simulation.sizes import ROLLING, SIZES, TINY, seed_of
from tests.simulation.world import LawBroken

ROOT = Path(__file__).resolve().parents[2]
SWARM = {
    "tiny": (80, 40),
    "small": (25, 25),
    "wide": (3, 3),
    "deep": (2, 2),
    "rolling": (25, 25),
}
"""Per size how many seeds, and how many of them a test. `make long` runs many more."""
CHUNKS = [
    (size, first, chunk)
    for size, (seeds, chunk) in SWARM.items()
    for first in range(0, seeds, chunk)
]


@pytest.mark.parametrize(("size", "first", "chunk"), CHUNKS)
def test_every_law_holds_under_faults(size, first, chunk):
    outcomes = [runs.run(seed, size=SIZES[size]) for seed in range(first, first + chunk)]
    broken = [outcome for outcome in outcomes if outcome.law]
    assert not broken, "\n".join([end_of(broken[0]), *map(str, broken[1:])])


@pytest.mark.parametrize(("size", "seeds"), [("tiny", 12), ("small", 4)])
def test_every_law_holds_while_collectors_are_evaluated_one_object_at_a_time(
    size, seeds, monkeypatch
):
    monkeypatch.setattr(turns, "TURN_STEPS", 300)
    monkeypatch.setattr(turns, "STEPS_PER_SECOND", 10_000)
    outcomes = [runs.run(seed, size=SIZES[size]) for seed in range(seeds)]
    broken = [outcome for outcome in outcomes if outcome.law]
    assert not broken, "\n".join([end_of(broken[0]), *map(str, broken[1:])])


@pytest.mark.parametrize("seed", runs.seeds_that_failed())
def test_a_seed_that_failed_once_fails_no_more(seed):
    size, number = seed_of(seed)
    outcome = runs.run(number, size=size)
    assert not outcome.law, end_of(outcome)


def without_relabelled(before, after):
    return replace(after, profiles=before.profiles)


def without_deleted(before, after):
    return replace(after, placements={**before.placements, **after.placements})


def nothing(*_args, **_named):
    return ""


def nobody(*_args):
    return frozenset()


def always(*_args):
    return True


def at_once(_duration):
    return 0.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "name", "wrong", "law"),
    [
        (wave_health, "shortfall", nothing, WAVES),
        (decision._Turn, "_is_exact", always, WAVES),
        (decision, "seconds_of", at_once, WAVES),
        (decision, "of_nobody", nothing, WAVES),
        (translate, "still_rejected", nobody, TAKEN_BACK),
        (layers, "_pinned", nothing, KEPT_PLACES),
        (layers, "_frozen", nothing, KEPT_PLACES),
    ],
)
def test_a_rollout_that_is_decided_otherwise_breaks_a_law(where, name, wrong, law, monkeypatch):
    monkeypatch.setattr(where, name, wrong)
    outcomes = (runs.run(seed, size=ROLLING) for seed in range(80))
    assert law in (outcome.law for outcome in outcomes)


@pytest.mark.long
@pytest.mark.parametrize("wrong", [without_relabelled, without_deleted])
def test_a_plan_that_says_what_does_not_become_breaks_a_law(monkeypatch, wrong):
    honest = planned.plan

    def plan(before, after, contents):
        return honest(before, wrong(before, after), contents)

    monkeypatch.setattr(planned, "plan", plan)
    outcomes = (runs.run(seed, size=TINY) for seed in range(144))
    assert any(outcome.law == PLANNED for outcome in outcomes)


def test_every_law_holds_without_faults():
    broken = [str(o) for seed in range(6) if (o := runs.run(seed, NO_FAULTS)).law]
    assert not broken, "\n".join(broken)


def test_messages_alone_may_be_late_doubled_or_lost():
    faults = Faults(delay_mean=0.5, loss=0.4, duplicate=0.4)
    broken = [str(o) for seed in range(6) if (o := runs.run(seed, faults)).law]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("seed", range(4))
def test_an_edge_alone_starts_again_and_repairs_its_cluster(seed):
    with closing(runs.Run(seed, NO_FAULTS)) as one:
        one.build()
        edges = [host for host in one.world.hosts.values() if host.attached]
        for host in list(one.world.hosts.values()):
            host.stop(server_too=True)
        for host in edges:
            host.start()
            one.world.cut(host.path)
            for at, key in enumerate(sorted(host.space.objects)):
                host.space.drift(key, delete=at % 2 == 0)
        one.world.run(60)
        one.oracle.spaces_as_wanted()


@pytest.mark.parametrize("seed", range(4))
def test_a_relay_alone_serves_a_child_that_lost_everything(seed):
    with closing(runs.Run(seed, NO_FAULTS)) as one:
        one.build()
        one.world.root.stop(server_too=True)
        for host in [host for host in one.world.hosts.values() if not host.path.is_root]:
            if len(host.path.names) == 1:
                host.stop()
                host.start()
            elif host.attached:
                host.stop(keep_disk=False)
                host.space.wipe()
                host.start()
        one.world.run(300)
        one.oracle.spaces_as_wanted()


@pytest.mark.parametrize("seed", range(3, 6))
def test_relays_that_lost_everything_take_back_what_they_had_sent(seed):
    with closing(runs.Run(seed, NO_FAULTS)) as one:
        one.build()
        relays = [
            host for host in one.world.hosts.values() if len(host.path.names) and not host.attached
        ]
        for host in relays:
            host.stop(keep_disk=False)
        for _ in range(10):
            one.workload.change()
        for host in relays:
            host.start()
        one.settle()


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_fault_breaks_its_law(mutant):
    assert kill(mutant) is not None, f"{mutant.name} survives: {mutant.meaning}"


def test_the_same_seed_is_the_same_run_in_every_process():
    code = "from tests.simulation import sizes\nfrom tests.simulation.run import run\n"
    code += "for size in sizes.SMALL, sizes.WIDE:\n"
    code += "    print(run(3, size=size, traced=True).trace)\n"
    code += "from tests.simulation.replay import again\n"
    code += "print(again('inventory_later:0').trace)"
    traces = set()
    for hash_seed in ("0", "12345"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        traces.add(done.stdout)
    assert len(traces) == 1, f"the trace depends on the process: {traces}"


def test_a_failed_seed_is_told_with_how_to_replay_it_and_its_trace(monkeypatch):
    monkeypatch.setattr(Oracle, "settled", _broken)
    failed = runs.run(0, size=TINY)
    told = end_of(failed)
    replayed = again(failed.name)
    assert f"trace {failed.trace}; again: make simulate SEED={failed.name}" in told
    assert (replayed.law, replayed.what) == (failed.law, failed.what)
    assert replayed.story[-1] in told
    assert again("withheld:0").story


def _broken(_oracle, *, leftovers=False):
    raise LawBroken(CONVERGENCE, f"planted, {leftovers=}")


@pytest.mark.parametrize("name", ["", "x", "small:", "huge:3", "withheld", "withheld:x", "1.5"])
def test_what_names_no_seed_is_refused_with_the_reason(name):
    with pytest.raises(ValueError, match=r"number of a seed|no size"):
        again(name)


@pytest.mark.long
def test_a_soak_leaves_every_node_as_large_as_it_was():
    taken = list(soak.soak(days=5, changes=15, samples=9, size=TINY))
    assert soak.flat(taken), soak.told(taken)


def test_every_assumption_of_the_world_has_a_contract_test():
    for file, test in ASSUMPTIONS.values():
        text = (ROOT / "tests" / "contract" / file).read_text(encoding="utf-8")
        assert f"async def {test}(" in text, f"{test} is not in {file}"
