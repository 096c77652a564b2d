"""`leafcast verify`: whether the signatures of a proof lead to root keys, without a tree."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli import shell_completion
from leafcast.cli.options.objects import load_files, refusals
from leafcast.key_files import read_public
from leafcast.proof_text import CLOSED_REMEDY, proof_lines
from leafcast.proofs import ProofChecked, check_proof, read_proof_file
from leafcast.show.sanitize import sanitize
from leafcast.signed_manifests import is_signed
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
@click.option(
    "-f",
    "--filename",
    "manifest",
    metavar="PATH",
    shell_complete=shell_completion.files,
    help="A manifest, or - for standard input: whether the object in it is what was signed.",
)
def verify(
    file: Path, roots: tuple[Path, ...], threshold: int | None, manifest: str | None
) -> None:
    """Check the signatures in a FILE of `leafcast proof -o json`, without a tree.

    They have to lead to the root keys that --root names; without it to those that FILE names
    itself, which you compare with the tree's (`leafcast keys list`). It says who signed, and not
    that there is nothing newer: compare the generations. With -f the object in a manifest is held
    to one that `leafcast proof --object` asked for, as it is written and as it would be sent.
    Exit code 1 if a signature or the object does not fit.
    """
    if threshold is not None and not roots:
        raise click.UsageError("--threshold goes with --root")
    if threshold is not None and threshold > len(roots):
        raise click.UsageError(f"--threshold {threshold} cannot be met by {len(roots)} root keys")
    proof = read_proof_file(file)
    if manifest is not None and proof.about is None:
        raise click.UsageError(f"-f goes with a file of `leafcast proof --object`, not {file}")
    keys = dict(map(read_public, roots))
    trusted = Roots(keys, threshold or len(keys)) if keys else None
    checked = check_proof(proof, trusted)
    for line in proof_lines(proof, checked, trusted):
        click.echo(sanitize(line))
    if trusted is None:
        click.echo("The root keys are those that the file names: compare them with the tree's.")
    fits = manifest is None or _fits(checked, manifest)
    if not (checked.good and fits):
        raise click.exceptions.Exit(1)


def _fits(checked: ProofChecked, manifest: str) -> bool:
    """Whether an object in a manifest is what all of these deliver, of whom it is told."""
    with refusals():
        loaded = [it.object for it in load_files([manifest], recursive=False)]
    fits = bool(checked.records)
    for it in checked.records:
        listed = it.listed
        if listed is None or it.refused:
            fits = False
        elif listed.is_closed:
            fits = False
            click.echo(f"{it.placement}: sealed, so nothing can be held to it; {CLOSED_REMEDY}")
        elif any(is_signed(listed, obj) for obj in loaded):
            click.echo(sanitize(f"{manifest} is what {it.placement} delivers"))
        else:
            fits = False
            click.echo(sanitize(f"{manifest} is not what {it.placement} delivers"))
    return fits
