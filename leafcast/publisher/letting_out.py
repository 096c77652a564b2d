"""Whether a release may be let out: what its nodes would refuse costs their links nothing."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.releases.publisher_roots import PublisherRoots
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import version_order

_MAKE = "have its publisher make it with `leafcast release make`"


def check_may_go_out(
    data: bytes, pinned: PublisherRoots | None, accepted: Mapping[str, bytes]
) -> None:
    """Raise ReleaseRefused unless a release is signed by the publisher that nodes believe.

    That is whom it names itself; who is pinned at the centre; and who signed what nodes run, which
    are the `accepted` releases by version.
    """
    named = PublisherRoots.named_by(data) or pinned
    if named is None:
        why = "it names no root of its publisher, so nobody can say who signed it"
        raise ReleaseRefused("release", why, _MAKE)
    manifest = named.verified(data)
    if version_order(manifest.upgrades_from) > version_order(manifest.version):
        why = f"{manifest.version} follows {manifest.upgrades_from} or later: nobody can take it"
        raise ReleaseRefused("upgrades_from", why, _MAKE)
    if pinned is not None:
        _check_by(pinned, data, "whom this centre pins", "let out what that one signed")
    for version, former in accepted.items():
        roots = PublisherRoots.named_by(former) if former != data else None
        if roots is not None:
            remedy = (
                f"let out what that one signed; if all nodes pin another one by now, delete the "
                f"LeafcastRelease of {version}"
            )
            _check_by(roots, data, f"whose {version} nodes run", remedy)


def _check_by(roots: PublisherRoots, data: bytes, whose: str, remedy: str) -> None:
    try:
        roots.verified(data)
    except ReleaseRefused as refused:
        why = f"the publisher {whose} does not stand for it: {refused.field}: {refused.why}"
        raise ReleaseRefused("publisher", why, remedy) from refused
