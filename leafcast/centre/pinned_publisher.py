"""Whom the owner of a centre pinned, asked of releases that come as objects, as from Git."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from schemas.releases.release_folder import PINNED, RELEASES
from schemas.releases.release_manifest import digest_of
from schemas.releases.release_refused import ReleaseRefused
from schemas.values.faults import Unusable

KEPT_MAX = 64
"""So many verdicts are kept; a release is looked at whenever nodes say something else."""


class PinnedPublisher:
    """Judges releases as `leafcast upgrade start` does; the pin may change at any time."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._pin: tuple[int, ...] = ()
        # By the hashes of a manifest and of those that nodes run, as long as the pin is this one.
        self._found: dict[tuple[str, ...], str] = {}

    def why_not(self, manifest: bytes) -> str:
        """Why the publisher does not stand for a release; "" if it does, or if none is pinned."""
        return self._found_of(manifest, None)

    def why_not_back(self, manifest: bytes, accepted: Mapping[str, bytes]) -> str:
        """Why `leafcast upgrade start` would refuse a release that was let out before; "" if not.

        `accepted` are the manifests of releases that nodes run, by version.
        """
        return self._found_of(manifest, accepted)

    def _found_of(self, manifest: bytes, accepted: Mapping[str, bytes] | None) -> str:
        pin: tuple[int, ...] = ()
        try:
            said = (self._data_dir / RELEASES / PINNED).stat()
            pin = said.st_ctime_ns, said.st_ino, said.st_size
        except FileNotFoundError:
            if accepted is None:
                return ""
        except OSError as error:
            return f"publisher: {error.filename}: {error.strerror}; mend that at the centre"
        if pin != self._pin or len(self._found) >= KEPT_MAX:
            self._pin, self._found = pin, {}
        others = () if accepted is None else ("back", *sorted(map(digest_of, accepted.values())))
        about = digest_of(manifest), *others
        if about not in self._found:
            self._found[about] = self._judged(manifest, accepted)
        return self._found[about]

    def _judged(self, manifest: bytes, accepted: Mapping[str, bytes] | None) -> str:
        # Here, as most centres let no release out, and need none of it.
        from leafcast.publisher.letting_out import check_may_go_out  # noqa: PLC0415
        from leafcast.publisher.pinning import pinned_publisher  # noqa: PLC0415

        try:
            pinned = pinned_publisher(self._data_dir)
            if pinned is not None or accepted is not None:
                check_may_go_out(manifest, pinned, accepted or {})
        except (ReleaseRefused, Unusable) as refused:
            return str(refused)
        return ""
