"""Whom the owner of a centre pinned, asked of releases that come as objects, as from Git."""

from __future__ import annotations

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
        # By the hash of a manifest, as long as the pin is this one.
        self._found: dict[str, str] = {}

    def why_not(self, manifest: bytes) -> str:
        """Why the publisher does not stand for a release; "" if it does, or if none is pinned."""
        try:
            said = (self._data_dir / RELEASES / PINNED).stat()
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"publisher: {error.filename}: {error.strerror}; mend that at the centre"
        pin = said.st_ctime_ns, said.st_ino, said.st_size
        if pin != self._pin or len(self._found) >= KEPT_MAX:
            self._pin, self._found = pin, {}
        digest = digest_of(manifest)
        if digest not in self._found:
            self._found[digest] = self._judged(manifest)
        return self._found[digest]

    def _judged(self, manifest: bytes) -> str:
        # Here, as most centres let no release out, and need none of it.
        from leafcast.publisher.letting_out import check_may_go_out  # noqa: PLC0415
        from leafcast.publisher.pinning import pinned_publisher  # noqa: PLC0415

        try:
            pinned = pinned_publisher(self._data_dir)
            if pinned is not None:
                check_may_go_out(manifest, pinned, {})
        except (ReleaseRefused, Unusable) as refused:
            return str(refused)
        return ""
