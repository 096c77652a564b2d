"""From what a release was built, and who says so: files beside its packages, verified offline.

`make dist` writes them: `leafcast-VERSION.provenance.json` (in-toto, SLSA 1.0) names the commit and
the lock files, and each file that was made of them; `SHA256SUMS` has the sum of each file, of the
provenance, too; and with a key `SHA256SUMS.sig` says who signed that. All are the same for the same
files and commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leafcast.bundles.keys import signing_key
from leafcast.bundles.packing import BUNDLE_FILE, file_sum
from leafcast.bundles.sums import SIGNATURE, SUMS, sums_text

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("deploy/requirements.txt", "deploy/build-requirements.txt", ".ci/requirements.txt")
_NO_COMMIT = "{lacks}: commit all that is to be in the packages, and build them again"


def statement(sums: Mapping[str, str], commit: str) -> dict[str, Any]:
    """The provenance of files, by name with their SHA-256, as built from a commit of this tree."""
    locks = [{"uri": f"file:{at}", "digest": {"sha256": file_sum(ROOT / at)}} for at in LOCKS]
    source = {"uri": f"gitoid:commit:sha1:{commit}", "digest": {"gitCommit": commit}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": sums[name]}} for name in sorted(sums)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:leafcast:make-dist:1",
                "externalParameters": {
                    name: os.environ[name]
                    for name in ("LEAFCAST_IMAGE", "SOURCE_DATE_EPOCH")
                    if os.environ.get(name)
                },
                "resolvedDependencies": [source, *locks],
            },
            # Who ran it is who signed SHA256SUMS.
            "runDetails": {"builder": {"id": "urn:leafcast:make-dist"}},
        },
    }


def commit_of(root: Path) -> str:
    """The commit that a tree is, with nothing changed since; raises LookupError, saying why."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LookupError("there is no commit here")
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD")
    if changed := git("status", "--porcelain"):
        raise LookupError(f"{changed.split(maxsplit=1)[1].splitlines()[0]} and the like is in none")
    return commit


def write_provenance(dist: Path, key: Path | None = None, root: Path = ROOT) -> None:
    """Write them for all files of a folder; a key signs nothing that is of no commit."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    said = dist / f"leafcast-{version}.provenance.json"
    for former in (said, dist / SUMS, dist / SIGNATURE):
        former.unlink(missing_ok=True)
    files = sorted(at for at in dist.iterdir() if at.is_file() and at.name != BUNDLE_FILE)
    sums = {at.name: file_sum(at) for at in files}
    try:
        text = json.dumps(statement(sums, commit_of(root)), indent=2) + "\n"
        said.write_text(text)
        sums[said.name] = file_sum(said)
    except LookupError as error:
        lacks = _NO_COMMIT.format(lacks=error)
        if key is not None:
            raise SystemExit(f"error: nothing is signed: {lacks}") from error
        sys.stderr.write(f"NO PROVENANCE: {lacks}\n")
    data = sums_text(sums).encode()
    (dist / SUMS).write_bytes(data)
    if key is not None:
        (dist / SIGNATURE).write_bytes(signing_key(key).sign(data))


if __name__ == "__main__":
    write_provenance(Path(sys.argv[1]), *map(Path, sys.argv[2:3]))
