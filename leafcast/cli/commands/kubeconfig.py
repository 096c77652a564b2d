"""`leafcast kubeconfig`: the file with which kubectl reaches the centre's API server."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.data_dir import DataDir


@click.command()
@data_dir_option
def kubeconfig(data_dir: Path | None) -> None:
    """Print which kubeconfig file leads to the centre's API server.

    As in: kubectl --kubeconfig "$(leafcast kubeconfig)" get epl
    """
    place = DataDir.at(data_dir)
    space = place.spaces().workloads[0]
    if not space.is_kubernetes:
        said = f"the centre of {place.folder} keeps its objects itself, on no API server"
        raise click.ClickException(f"{said}; leafcast up --kube starts one, or use leafcast get")
    if not space.kubeconfig:
        said = f"the centre of {place.folder} uses {space.title}"
        raise click.ClickException(f"{said}; use kubectl as it is set up there")
    click.echo(space.kubeconfig)
    if space.context:
        click.echo(f'The context is "{space.context}".', err=True)
