"""What `leafcast backup verify` does: it runs a centre, which the others do not."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from leafcast.backups.operator_keys import OperatorKey
from leafcast.centre.backup_verification import VerifiedBackup, verify_backup
from leafcast.cli.session_calls import teller
from leafcast.signals import EndedBySignal, run_until_signal
from schemas.records.placements import title
from schemas.values.wording import many

DIGEST_SHOWN = 16


def run_verification(file: Path, key: OperatorKey | None, scratch: Path | None) -> list[str]:
    """Verify a backup, and say what it came to; raises as verify_backup, and click's Exit."""
    with tempfile.TemporaryDirectory(prefix="leafcast-verify-", dir=scratch) as folder:
        try:
            return verified_lines(
                run_until_signal(verify_backup(file, key, Path(folder), teller()))
            )
        except EndedBySignal as end:
            raise click.exceptions.Exit(end.exit_code) from None


def verified_lines(found: VerifiedBackup) -> list[str]:
    """What was verified, and what it came to."""
    when = datetime.fromtimestamp(found.time_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    lines = [f"{found.file}: of {when}, tree {found.tree}"]
    for it in found.streams:
        same = f"the same again, {it.digest[:DIGEST_SHOWN]}" if it.digest else "no digest is known"
        lines.append(f"  {it.name}: {many(it.messages, 'message')}, {same}")
    lines += [f"  not in it: the objects of {it}" for it in found.elsewhere]
    lines += [f"  held: {title(name)}: {why}" for name, why in sorted(found.held.items())]
    counts = f"{many(found.records, 'record')} in force, {many(found.objects, 'object')}"
    lines.append(f"It is good: a centre ran of it after {found.seconds:.1f} s, with {counts}.")
    return lines
