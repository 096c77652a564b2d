"""`leafcast mcp`: the tree for an assistant, which reads and changes nothing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import until_signal

LIBRARY = "mcp"


@click.command()
@data_dir_option
def mcp(data_dir: Path | None) -> None:
    """Let an assistant read the tree, over the Model Context Protocol.

    It answers at standard input and output, as assistants start it. Its tools are status, plan,
    diff, why, doctor and get; none changes anything. Secrets are hidden, and answers are
    bounded. It needs the extra leafcast[mcp].
    """
    if find_spec(LIBRARY) is None:
        raise click.ClickException(f"{LIBRARY} is not installed: pip install 'leafcast[mcp]'")
    # Here, as no other command needs the library.
    from leafcast.assistants.server import serve_assistant  # noqa: PLC0415
    from leafcast.cli.apply.pasted_plan import planned_text  # noqa: PLC0415

    until_signal(serve_assistant(data_dir, planned_text))
