"""`leafcast completion SHELL`: the script that lets a shell complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(leafcast completion bash)"    in ~/.bashrc
    zsh:   eval "$(leafcast completion zsh)"     in ~/.zshrc
    fish:  leafcast completion fish > ~/.config/fish/completions/leafcast.fish
    """  # noqa: D301 - click's mark for lines that stay as they are
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "leafcast", "_LEAFCAST_COMPLETE")
    click.echo(script.source())
