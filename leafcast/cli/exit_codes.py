"""Commands whose exit code 1 says that something differs: an error is 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from leafcast.ask.session import CallFailed, NotRunning
from leafcast.data_dir import DataDirUnusable
from leafcast.errors import said
from leafcast.manifest_sources import BadManifests
from relay.space_errors import SpaceError


class _ExitCodeTwo(click.ClickException):
    exit_code = 2


@contextmanager
def exit_code_two() -> Iterator[None]:
    """End with exit code 2 on any error, told as other commands tell it."""
    try:
        yield
    except click.exceptions.Exit:
        raise
    except click.ClickException as error:
        raise _ExitCodeTwo(error.format_message()) from error
    except BadManifests as error:
        raise _ExitCodeTwo("\n".join(error.faults)) from error
    except (NotRunning, DataDirUnusable, SpaceError, CallFailed) as error:
        raise _ExitCodeTwo("\n".join(said(error))) from error
