"""The planted faults, and a life or seeds that show each: who finds none of them proves nothing.

A fault is killed if some law is broken with it that holds without it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation import (
    planted,
    planted_keys,
    planted_members,
    planted_order,
    planted_removals,
    planted_reports,
    planted_rollouts,
    planted_rows,
    planted_sealing,
)
from tests.simulation.lives import is_life, play
from tests.simulation.lives_members import play_trio
from tests.simulation.member_ports import MemberPorts
from tests.simulation.ports import Ports
from tests.simulation.run import Outcome, run
from tests.simulation.sizes import ROLLING, SMALL, TINY, WIDE, Size, seed_of
from tests.simulation.trios import TRIO

SEEDS_TO_KILL = 40
"""How many seeds of each size are tried."""
SIZES: tuple[Size, ...] = (TINY, SMALL)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted fault, and the lives that are tried first."""

    plant: type[Ports]
    lives: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = SIZES

    @property
    def name(self) -> str:
        return self.plant.__name__

    @property
    def meaning(self) -> str:
        return (self.plant.__doc__ or "").strip()


def kill(mutant: Mutant, seeds: int = SEEDS_TO_KILL) -> Outcome | None:
    """The first life or seed in which a law is broken; None if none of so many shows it."""
    for name in (
        *mutant.lives,
        *(f"{size.name}:{n}" for n in range(seeds) for size in mutant.sizes),
    ):
        outcome = _run(name, mutant.plant())
        if outcome.law:
            return outcome
    return None


def _run(name: str, ports: Ports) -> Outcome:
    if isinstance(ports, MemberPorts):
        return play_trio(name, ports=ports)
    if is_life(name):
        return play(name if ":" in name else f"{name}:0", ports=ports)
    size, number = seed_of(name)
    return run(number, size=size, ports=ports)


MUTANTS = (
    Mutant(planted_rollouts.AllOpened, sizes=(ROLLING,)),
    Mutant(planted_rollouts.SaltOfWave, sizes=(ROLLING,)),
    Mutant(planted_rollouts.AbortLeavesGate, ("rolling:60",), sizes=(ROLLING,)),
    Mutant(planted_rollouts.WindowOfCentre, ("own_zone",)),
    Mutant(planted_rollouts.HistorySwept, ("undone_after_sweeps",)),
    Mutant(planted_rollouts.PathsIgnored, ("pinned",)),
    Mutant(planted_rollouts.SharedPastGate, ("shared_object",)),
    Mutant(planted_rollouts.TakenForgotten, ("closed_window",)),
    Mutant(planted_rollouts.WaveMixed, sizes=(ROLLING,)),
    Mutant(planted_rollouts.WaitingSynced, ("closed_window",)),
    Mutant(planted_rollouts.FormerStepCounted, sizes=(ROLLING,)),
    Mutant(planted_rollouts.UnreachableSynced, ("away_in_wave",)),
    Mutant(planted_rollouts.CellLost, sizes=(ROLLING,)),
    Mutant(planted_rows.MovedRowTwice, ("moved_and_gone",)),
    Mutant(planted_rows.LeavingRowKept, ("moved_and_gone",)),
    Mutant(planted_rows.NoBlankRow, ("absent_rows",)),
    Mutant(planted_rows.CutBeforeMerging),
    Mutant(planted_rows.SumsRounded),
    Mutant(planted_order.OldContentCounts, ("awaited",)),
    Mutant(planted_order.WaitForNothing, ("awaited",)),
    Mutant(planted_order.WaitEverywhere, ("nowhere_near",)),
    Mutant(planted_order.BreakBeforeMake, ("moved_softly",)),
    Mutant(planted_keys.NoForerunners, ("keys_away",)),
    Mutant(planted_keys.OwnRootsAlone, ("keys_away",)),
    Mutant(planted_keys.FormerRootsAlone, ("keys_away",)),
    Mutant(planted_keys.RevokedBelieved, ("key_revoked",)),
    Mutant(planted_keys.NeverEnds, ("key_ended",)),
    Mutant(planted_keys.StillGranted, ("key_revoked",)),
    Mutant(planted_keys.ForgottenWithKey, ("key_ended",)),
    Mutant(planted_keys.VoidKeyKept, ("node_rekeyed",)),
    Mutant(planted_keys.NextKeyAtOnce, ("node_rekeyed",)),
    Mutant(planted_keys.BoxForOneKey, ("node_rekeyed",)),
    Mutant(planted.WorksOn, ("worked_at",)),
    Mutant(planted_sealing.FleetKeyInClear),
    Mutant(planted_sealing.KeyInClear),
    Mutant(planted_sealing.AnothersKey),
    Mutant(planted_sealing.FormerKeysAlone, ("placement_key_changed",)),
    Mutant(planted_sealing.NewestKeyAlone, ("kept_under_former_key",)),
    Mutant(planted_sealing.DeltasFirst, ("fleet_rotated",)),
    Mutant(planted_sealing.UnopenedRemoved, ("unopened",)),
    Mutant(planted.PruneAtOnce, ("moved_between",)),
    Mutant(planted.PruneNever),
    Mutant(planted.PruneBeforeRead, ("slept", "old_edge")),
    Mutant(planted.SettleAtOnce, ("moved_slowly",)),
    Mutant(planted.SettleNever),
    Mutant(planted.NoHold, ("slow_apply",)),
    Mutant(planted.KnowAllTerms, ("ledger_lost_twice",)),
    Mutant(planted.ListOnlyWhatWas, ("new_and_met_again",)),
    Mutant(planted.ExpireAtOnce, ("region_wiped",)),
    Mutant(planted.KeepOldSnapshot),
    Mutant(planted.NoSnapshot),
    Mutant(planted.NoLeaf),
    Mutant(planted.StaleInSilence, ("slept",)),
    Mutant(planted.HeadsInFull, ("curious_child",)),
    Mutant(planted.LocationsInFull, ("curious_child",)),
    Mutant(planted.MailToAll),
    Mutant(planted.MailLost),
    Mutant(planted.ClearInForce),
    Mutant(planted.UnconfirmedMail),
    Mutant(planted.MailBeforeContent),
    Mutant(planted.ReadIgnored, ("old_edge", "resurrected_mail")),
    Mutant(planted.ForgetChildren, ("node_removed",)),
    Mutant(planted.AddNobody),
    Mutant(planted.StoreAltered),
    Mutant(planted.KeepAltered),
    Mutant(planted.ForgetSnapshot, ("old_view",)),
    Mutant(planted.KeepDropped, ("node_removed",)),
    Mutant(planted.SweepInForce, ("content_swept",)),
    Mutant(planted.NoSweep, ("content_swept",)),
    Mutant(planted.AskInHaste),
    Mutant(planted.NeverAsk),
    Mutant(planted_removals.HoldUnsigned, ("held_removal",)),
    Mutant(planted_removals.HoldForgotten, ("held_removal",)),
    Mutant(planted.CustomizeOnce, ("relabelled",)),
    Mutant(planted.FailureRemoves, ("frozen",)),
    Mutant(planted.FreezeNothing, ("frozen",)),
    Mutant(planted.TwoHomes, ("twins",)),
    Mutant(planted.StopIgnored, ("twins",)),
    Mutant(planted.SayIgnored, ("lost_reports",)),
    Mutant(planted.ShowNothing, ("shown_a_newer",)),
    Mutant(planted.NoHello),
    Mutant(planted.NoWelcome),
    Mutant(planted_reports.NoProgress),
    Mutant(planted_reports.ProgressEarly, ("to_and_fro",)),
    Mutant(planted_reports.ProgressUnheard),
    Mutant(planted_reports.AlwaysExact),
    Mutant(planted_reports.SumUncompared, sizes=(WIDE,)),
    Mutant(planted_reports.NeverExact),
    Mutant(planted_reports.SyncedEarly),
    Mutant(planted_reports.CountTwice),
    Mutant(planted_reports.FailuresUntold, ("refused",)),
    Mutant(planted_reports.ReasonsUntold, ("refused",)),
    Mutant(planted_reports.NoReports),
    Mutant(planted_members.NoFenceRead, ("late_before_fence",), sizes=(TRIO,)),
    Mutant(planted_members.FenceNotExpected, ("late_after_fence",), sizes=(TRIO,)),
    Mutant(planted_members.SpacesUnfenced, ("late_in_space",), sizes=(TRIO,)),
    Mutant(planted_members.LeaseTakenEarly, ("elections",), sizes=(TRIO,)),
    Mutant(planted_members.HolderGoesOn, ("cut_off_and_back",), sizes=(TRIO,)),
    Mutant(planted_members.ClockNotRefused, ("clock_wrong",), sizes=(TRIO,)),
    Mutant(planted_members.StateUnread, ("keys_stopped",), sizes=(TRIO,)),
    Mutant(planted_members.StateLate, ("keys_stopped",), sizes=(TRIO,)),
    Mutant(planted_members.TermKept, ("cut_off_and_back",), sizes=(TRIO,)),
    Mutant(
        planted_members.Unconfirmed,
        ("child_gone_amid", "child_gone_amid:1", "child_gone_amid:2"),
        sizes=(TRIO,),
    ),
    Mutant(planted.ForgetPlacement),
    Mutant(planted.ApplyAll),
    Mutant(planted.NeverTold),
)


def main() -> int:
    """Kill every mutant, say by what, and how many were killed."""
    killed = 0
    for mutant in MUTANTS:
        outcome = kill(mutant)
        killed += outcome is not None
        by = f"killed by {outcome.name}: {outcome.law}" if outcome else "SURVIVES"
        print(f"  {mutant.name:20} {by}\n    {mutant.meaning}", flush=True)
    print(f"mutants killed: {killed} of {len(MUTANTS)}")
    return 0 if killed == len(MUTANTS) else 1
