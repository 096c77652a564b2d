"""`leafcast verify`: whether the signatures of a proof lead to root keys, without a tree."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.key_files import read_public
from leafcast.proof_text import proof_lines
from leafcast.proofs import check_proof, read_proof_file
from leafcast.show.sanitize import sanitize
from schemas.records.roots import Roots

_path = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=_path)
@click.option(
    "--root",
    "roots",
    type=_path,
    multiple=True,
    help="A public root key that you trust, as `leafcast keys make` wrote it. Repeatable.",
)
@click.option(
    "--threshold", type=click.IntRange(1, 16), help="How many of these must sign.  [all of them]"
)
def verify(file: Path, roots: tuple[Path, ...], threshold: int | None) -> None:
    """Check the signatures in a FILE of `leafcast proof -o json`, without a tree.

    They have to lead to the root keys that --root names; without it to those that FILE names
    itself, which you compare with the tree's (`leafcast keys list`). It says who signed, and not
    that there is nothing newer: compare the generations. Exit code 1 if a signature does not fit.
    """
    if threshold is not None and not roots:
        raise click.UsageError("--threshold goes with --root")
    if threshold is not None and threshold > len(roots):
        raise click.UsageError(f"--threshold {threshold} cannot be met by {len(roots)} root keys")
    proof = read_proof_file(file)
    keys = dict(map(read_public, roots))
    trusted = Roots(keys, threshold or len(keys)) if keys else None
    checked = check_proof(proof, trusted)
    for line in proof_lines(proof, checked, trusted):
        click.echo(sanitize(line))
    if trusted is None:
        click.echo("The root keys are those that the file names: compare them with the tree's.")
    if not checked.good:
        raise click.exceptions.Exit(1)
