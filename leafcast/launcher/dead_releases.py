"""Which versions end again and again and never come up, as those do whose files are damaged."""

from __future__ import annotations

from leafcast.launcher.launch_folder import LaunchFolder

ENDS_MAX = 3
"""In a row. What never answered is given up then; what did, if its files are not as they were."""


class DeadReleases:
    """What the launcher saw of them since one was ready: where none is, the files are not why."""

    def __init__(self, folder: LaunchFolder) -> None:
        self._folder = folder
        # How often each ended since, and how often of that without any answer, the last times.
        self._ends: dict[str, tuple[int, int]] = {}
        self.versions: dict[str, str] = {}

    def forget(self) -> None:
        """One was ready: what ends from now on does so by itself."""
        self._ends.clear()
        self.versions.clear()

    def ended(self, version: str, how: str, *, has_answered: bool) -> None:
        """A run of it ended that was never ready."""
        if version in self.versions:
            # Its files were read for that, all of them.
            return
        ends, silent = self._ends.get(version, (0, 0))
        ends, silent = ends + 1, 0 if has_answered else silent + 1
        self._ends[version] = ends, silent
        if ends < ENDS_MAX:
            return
        damage = self._folder.damage(version)
        if not damage and silent < ENDS_MAX:
            return
        if self._folder.gives_way(version):
            del self._ends[version]
            return
        why = f"ended {ends} times in a row before it was ready: {how}"
        self.versions[version] = f"{why}; {damage}" if damage else why
