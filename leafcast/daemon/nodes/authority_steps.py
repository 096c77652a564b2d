"""What a change of the certificate authority does next, and for whom it waits.

Whoever carries out a step says whom it lacks. Nothing is remembered between two runs but which
authorities there are: a run that was broken off anywhere is begun again, and steps done twice.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from leafcast.node.credentials.authorities import Authorities

TOLD, RENEWED, LEFT, DONE = "told", "renewed", "left", "done"
"""What a change is at: all are told of the new one, servers get certificates of it, all leave the
former one; or there is no change."""

Lacking = dict[str, str]
"""Why, by the path of a node that a step waits for."""


@dataclass(frozen=True, slots=True)
class DistributeAuthorities:
    """Have all nodes believe these, and no others; it lacks who may come back without it."""

    authorities: str


@dataclass(frozen=True, slots=True)
class SwitchAuthority:
    """From now on the one that was to come signs."""


@dataclass(frozen=True, slots=True)
class RenewCertificates:
    """Have all servers show certificates of who signs now; it lacks whose do not."""

    former: str
    signing: str


@dataclass(frozen=True, slots=True)
class FinishChange:
    """Nobody has to believe the former one any more."""


AuthorityStep = DistributeAuthorities | SwitchAuthority | RenewCertificates | FinishChange


def change_steps(
    found: Authorities, *, force: bool = False
) -> Generator[AuthorityStep, Lacking, tuple[str, Lacking]]:
    """The steps in order, as far as they go now; then what the change waits with, and for whom.

    No server shows a certificate before all nodes believe who signed it, and none is left by its
    nodes while a server shows one of it. With `force` nobody is waited for.
    """
    signing, former = found.signing.certificate, found.former
    if found.coming:
        lacking = yield DistributeAuthorities(found.believed)
        if lacking and not force:
            return TOLD, lacking
        yield SwitchAuthority()
        signing, former = found.coming, signing
    if not former:
        return DONE, {}
    lacking = yield RenewCertificates(former, signing)
    if lacking and not force:
        return RENEWED, lacking
    lacking = yield DistributeAuthorities(signing)
    if lacking and not force:
        return LEFT, lacking
    yield FinishChange()
    return DONE, {}
