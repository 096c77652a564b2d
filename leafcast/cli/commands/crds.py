"""`leafcast crds`: definitions of our API kinds for a Kubernetes cluster, made from the models."""

from __future__ import annotations

import json

import click

from schemas.crds.definitions import custom_resource_definitions
from schemas.objects.yaml_writing import write_yaml


@click.command()
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="How to print them."
)
def crds(output: str) -> None:
    """Print definitions of the API kinds, for Kubernetes.

    They are CustomResourceDefinitions, ready for `kubectl apply -f -`.
    """
    definitions = custom_resource_definitions()
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": definitions}
        click.echo(json.dumps(listed, indent=2))
    else:
        click.echo("---\n".join(map(write_yaml, definitions)), nl=False)
