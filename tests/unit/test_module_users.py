"""What is installed is used: no module of the product is there for tests alone."""

import ast
from pathlib import Path

import click

from leafcast.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "relay", "controllers", "leafcast")
FOR_USERS = {
    "leafcast.__main__": "python -m leafcast",
    "leafcast.cli.main": "the program, as pyproject.toml names it",
    "leafcast.client": "for programs of users",
    "leafcast.daemon.__main__": "what `up` starts",
    "leafcast.launcher.program": "leafcast-launcher, as pyproject.toml names it",
    "leafcast.service.container_health": "HEALTHCHECK of deploy/Dockerfile",
}


def modules():
    """The modules of the product, by name; a package goes by its own."""
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), file


def imported(name, file):
    """What a module imports anywhere, and what it may name by it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # What completes is loaded by name.
            yield node.value


def commands():
    """The modules of the program's commands, which it loads by their names."""
    context = click.Context(cli)
    listed = (cli.get_command(context, name) for name in cli.list_commands(context))
    return {command.callback.__module__ for command in listed}


def test_every_module_that_is_installed_is_imported_by_another():
    files = dict(modules())
    used = {
        other for name, file in files.items() for other in imported(name, file) if other != name
    }
    packages = {name for name, file in files.items() if file.name == "__init__.py"}
    unused = files.keys() - used - packages - commands() - FOR_USERS.keys()
    assert not unused
