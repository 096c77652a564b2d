"""Join bundles of a former release: who joined by one goes on, and nobody else joins by it."""

from __future__ import annotations

from pathlib import Path

from leafcast.join.default_folder import folder_of_grant
from leafcast.join.folder import GRANT_FILE, read_joined
from leafcast.join.kept_grant import GrantUnreadable, KeptGrant, read_grant


def joined_by(file: Path, folder: Path | None) -> tuple[Path, KeptGrant]:
    """The folder of a node that joined by the bundle in a file, and what it keeps there.

    `folder` is the one that was named. Raises GrantUnreadable if nobody joined by it there, and
    DataDirUnusable.
    """
    bundle = read_grant(file)
    place = (folder or folder_of_grant(bundle)).absolute()
    try:
        found = read_joined(place)
    except FileNotFoundError:
        found = None
    if found is None or not found.admitted or found.path in bundle.former:
        reason = (
            f"it is a join bundle for {bundle.path}, of a former release, and nobody joined by it "
            f"in {place}: bundles let nobody in any more"
        )
        remedy = (
            f"make a token with `leafcast node add {bundle.path}` at the centre, and join with "
            "that; if it joined by the bundle, name the --data-dir that it has"
        )
        raise GrantUnreadable(file, reason, remedy)
    if (found.tree, found.path) != (bundle.tree, bundle.path):
        return place, bundle
    return place, read_grant(place / GRANT_FILE)
