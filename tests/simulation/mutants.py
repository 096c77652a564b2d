"""The planted faults, the law that each breaks, and a seed that shows it.

A simulation that does not find them proves nothing. Where the core has changed, and a seed shows
its fault no more, others are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.simulation import laws, oracle, planted, planted_moves, planted_turns, planted_views
from tests.simulation.mutants_centre import PLANTED as IN_THE_CENTRE
from tests.simulation.planted import Patch
from tests.simulation.run import Outcome, run
from tests.simulation.sizes import BLIND, SMALL, TINY, WIDE, Size, seed_of
from tests.simulation.worlds import is_world, play

SEEDS_TO_KILL = 150
"""How many seeds of each of a fault's sizes are tried."""
WORLDS_TO_KILL = 12
"""How many lives of the world are tried that a fault names: not each shows it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted fault, the seed that is tried first, and the sizes of the next ones."""

    plant: Callable[[], Patch]
    law: str
    seed: str = ""
    sizes: tuple[Size, ...] = (TINY, SMALL)

    @property
    def name(self) -> str:
        return self.plant.__name__

    @property
    def meaning(self) -> str:
        return (self.plant.__doc__ or "").strip()


@contextmanager
def in_force(mutant: Mutant) -> Iterator[None]:
    """Plant the fault, and take it out again."""
    owner, name, instead = mutant.plant()
    honest = owner.__dict__[name]
    setattr(owner, name, instead)
    try:
        yield
    finally:
        setattr(owner, name, honest)


def kill(mutant: Mutant, seeds: int = SEEDS_TO_KILL) -> Outcome | None:
    """The first seed that breaks the mutant's law; None if none of so many does."""
    hinted = [mutant.seed] if mutant.seed else []
    if is_world(mutant.seed):
        world = mutant.seed.partition(":")[0]
        hinted += [f"{world}:{n}" for n in range(WORLDS_TO_KILL)]
    others = [f"{size.name}:{n}" for n in range(seeds) for size in mutant.sizes]
    with in_force(mutant):
        for name in (*hinted, *others):
            outcome = play(name) if is_world(name) else _run(name)
            if outcome.law == mutant.law:
                return outcome
    return None


def _run(name: str) -> Outcome:
    size, number = seed_of(name)
    return run(number, size=size, afresh=True)


MUTANTS = (
    Mutant(planted.trust_unsigned, oracle.ONLY_SIGNED, "small:13"),
    Mutant(planted.trust_another_tree, oracle.ONLY_SIGNED, "small:17"),
    Mutant(planted.ignore_scope, oracle.ONLY_SIGNED, "small:8"),
    Mutant(planted.believe_any_body, oracle.ONLY_SIGNED, "other_body:0"),
    Mutant(planted.keep_any_blob, oracle.ONLY_SIGNED, "small:36"),
    Mutant(planted.ignore_the_key, oracle.NO_RESURRECTION, "small:13"),
    Mutant(planted.believe_any_profile, oracle.EXACTLY_ONCE, "wide-still:22"),
    Mutant(planted.ignore_generation, oracle.NO_RESURRECTION, "small:13"),
    Mutant(planted.forget_tombstone, oracle.NO_RESURRECTION, "small-still:15"),
    Mutant(planted.remember_at_once, oracle.NO_RESURRECTION, "tiny:0"),
    Mutant(planted.ask_no_index, oracle.NO_RESURRECTION, "tiny:0"),
    Mutant(planted.drop_the_epoch_check, oracle.CONVERGENCE, "tiny:0"),
    Mutant(planted.prune_before_read, oracle.NO_IGNORANCE, "tiny:0"),
    Mutant(planted.absence_is_deletion, oracle.NO_IGNORANCE, "small:173"),
    Mutant(planted.any_index_drops, laws.ACKNOWLEDGED, "small:11"),
    Mutant(planted.clear_on_a_late_gone, oracle.NO_IGNORANCE, "small:11"),
    Mutant(planted.never_clear, oracle.CONVERGENCE, "small:0"),
    Mutant(planted.acknowledge_before_stored, laws.ACKNOWLEDGED, "tiny:0"),
    Mutant(planted.acknowledge_what_is_parked, laws.ACKNOWLEDGED, "tiny:0"),
    Mutant(planted.delta_before_blobs, oracle.CONTENT_FIRST, "small:1"),
    Mutant(planted.shrink_before_gain, oracle.NO_IGNORANCE, "small:60"),
    Mutant(planted_turns.take_one_by_one, laws.NO_IGNORANCE, "exchanged:0"),
    Mutant(planted_turns.take_between_halves, laws.NO_IGNORANCE, "exchanged:1"),
    Mutant(planted_turns.issue_one_by_one, laws.NO_IGNORANCE, "exchanged:1"),
    Mutant(planted_turns.begin_anew_on_a_half, laws.NO_IGNORANCE, "exchanged_by_halves:0"),
    Mutant(planted_turns.give_between_halves, laws.NO_IGNORANCE, "exchanged_by_halves:0"),
    Mutant(planted.profile_before_its_locations, oracle.EXACTLY_ONCE, "small:42"),
    Mutant(planted.count_twice, oracle.EXACTLY_ONCE, "small:42"),
    Mutant(planted.count_twice_after_a_move, oracle.EXACTLY_ONCE, "wide:470", (SMALL, WIDE)),
    Mutant(planted_moves.keep_the_place_it_left, laws.CONVERGENCE, "small:26", (SMALL,)),
    Mutant(planted_moves.forget_where_it_hung, laws.NO_IGNORANCE, "small:278", (SMALL, WIDE)),
    Mutant(planted.complete_too_early, oracle.EXACTLY_ONCE, "small:1"),
    Mutant(planted.never_read_again, laws.ACKNOWLEDGED, "small-still:40"),
    Mutant(planted.ignore_the_report_digest, oracle.CONVERGENCE, "lost_reports:0"),
    Mutant(planted_views.stay_though_superseded, laws.ONE_SESSION, "twins:0"),
    Mutant(planted_views.grant_no_newer_epoch, laws.ONE_SESSION, "twins:0"),
    Mutant(planted_views.hear_an_older_session, laws.ONE_SESSION, "deaf_twins:0"),
    Mutant(planted_views.read_on_over_what_was_swept, laws.NO_RESURRECTION, "swept:0"),
    Mutant(planted_views.sweep_unanswered, laws.NO_RESURRECTION, "away:0"),
    Mutant(planted_views.sweep_no_tombstones, laws.BOUNDED, "swept:0"),
    Mutant(planted_views.sweep_at_first_sight, laws.NO_LOSS, "superseded:0"),
    Mutant(planted_views.sweep_no_content, laws.BOUNDED, "superseded:0"),
    Mutant(planted_views.never_say_withheld, laws.WITHHOLDING, "withheld:0"),
    Mutant(planted_views.never_say_outdated, laws.WITHHOLDING, "outdated:0"),
    Mutant(planted_views.never_say_stale, laws.WITHHOLDING, "old_index:0"),
    Mutant(planted_views.measure_by_the_wall_clock, laws.WITHHOLDING, "old_index:0"),
    Mutant(planted_views.any_index_is_fresh, laws.WITHHOLDING, "old_index:0"),
    Mutant(planted_views.wait_for_the_end_for_ever, laws.WITHHOLDING, "no_end:0"),
    Mutant(planted_views.take_an_older_index, laws.NO_RESURRECTION, "told_lies:0"),
    Mutant(planted_views.remember_without_an_index, laws.NO_RESURRECTION, "old_backup:0"),
    Mutant(planted_views.show_by_chunks, laws.NO_RESURRECTION, "old_backup:0"),
    Mutant(planted_views.ask_at_once, laws.NO_LOSS, "lost_content:0"),
    Mutant(planted_views.silence_is_absence, laws.NO_LOSS, "small:29"),
    Mutant(planted_views.one_refusal_stops_all, laws.CONVERGENCE, "refused:0"),
    Mutant(planted_views.drop_what_a_refusal_concerns, laws.ACKNOWLEDGED, "told_lies:0"),
    Mutant(planted_views.let_go_before_the_new_is_here, laws.NO_LOSS, "lost_on_the_way:0"),
    Mutant(planted_views.count_who_is_on_the_move, laws.EXACTLY_ONCE, "moved:0"),
    Mutant(planted_views.begin_what_is_not_meant, laws.CONVERGENCE, "wide-still:12"),
    Mutant(planted.forget_what_was_sent, "No exception", "tiny:5"),
    Mutant(planted.never_judge_again, oracle.CONVERGENCE, "tiny:0"),
    Mutant(planted.keep_the_label_counts, "No exception", "small:0"),
    *(Mutant(*planted_there, sizes=(BLIND,)) for planted_there in IN_THE_CENTRE),
)


def main() -> int:
    """Kill every mutant, say by which seed, and how many were killed."""
    killed = 0
    for mutant in MUTANTS:
        outcome = kill(mutant)
        killed += outcome is not None
        by = f"killed by {outcome.name}: {mutant.law}" if outcome else f"SURVIVES {mutant.law}"
        print(f"  {mutant.name:30} {by}\n    {mutant.meaning}")
    print(f"mutants killed: {killed} of {len(MUTANTS)}")
    return 0 if killed == len(MUTANTS) else 1
