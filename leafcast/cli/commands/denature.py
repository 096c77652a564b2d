"""`leafcast denature`: a filter that puts what would act at a hub into Denatureds."""

from __future__ import annotations

import sys

import click

from leafcast.denatured_text import denatured_text
from leafcast.manifest_sources import STDIN_ORIGIN, BadManifests
from schemas.objects.yaml_documents import InvalidManifest


@click.command()
@click.option(
    "-n",
    "--namespace",
    default="",
    envvar="HELM_NAMESPACE",
    help="Of Roles, quotas and the like that name none.",
)
def denature(namespace: str) -> None:
    """Put what would act at a hub into Denatureds, from standard input to standard output.

    Webhooks, APIServices, RBAC, quotas and the like go to edges inside a Denatured, and act there
    only; all else goes through as it is. For Helm it is a post-renderer:

    \b
      helm template shop ./chart | leafcast denature -n shop | kubectl apply -n shop -f -
      helm install shop ./chart --post-renderer leafcast --post-renderer-args denature
    """  # noqa: D301 - click's mark for lines that stay as they are
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadManifests([f"{STDIN_ORIGIN}: not UTF-8 text: {error.reason}"]) from error
    try:
        written = denatured_text(text, STDIN_ORIGIN, namespace)
    except InvalidManifest as error:
        raise BadManifests([str(problem) for problem in error.problems]) from error
    sys.stdout.buffer.write(written.encode())
