"""How a daemon logs: as text for people, or each line as logfmt or JSON for programs."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import click

TEXT = "%(asctime)s %(levelname)s %(message)s"
FORMATS = ("text", "logfmt", "json")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+@")

_option = partial(
    click.option, "--log-format", type=click.Choice(FORMATS), default="text", show_default=True
)
log_format_option = _option(help="How each line of the log is written.")

_FORMAT = "LEAFCAST_LOG_FORMAT"
"""The environment variable by which a daemon is told in which of FORMATS its log is."""
_LOGFMT_ERROR = re.compile(r'ts=\S+ level=error logger=\S+ msg=("(?:[^"\\]|\\.)*"|\S*)')


def _tell(_context: click.Context, _parameter: click.Parameter, told: str) -> None:
    os.environ[_FORMAT] = told


daemon_log_option = _option(
    expose_value=False, callback=_tell, help="How each line of daemon.log is written."
)
"""Tells the daemons that this process starts."""

LogFields = dict[str, str]


class _Structured(logging.Formatter):
    """One line for each record, whatever it holds."""

    def __init__(self, write: Callable[[LogFields], str]) -> None:
        super().__init__()
        self._write = write

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "ts": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return self._write(fields)


def formatter(name: str) -> logging.Formatter:
    """The formatter of one of FORMATS."""
    if name == "json":
        return _Structured(lambda fields: json.dumps(fields, ensure_ascii=False))
    return _Structured(_logfmt) if name == "logfmt" else logging.Formatter(TEXT)


def set_up_logs(name: str, handlers: Sequence[logging.Handler] = ()) -> None:
    """Log in one of FORMATS, to standard error unless handlers are named."""
    listed = handlers or (logging.StreamHandler(),)
    for handler in listed:
        handler.setFormatter(formatter(name))
    logging.basicConfig(level=logging.INFO, handlers=listed)


def format_told() -> str:
    """The one of FORMATS that a daemon was told; text for any other word."""
    told = os.environ.get(_FORMAT, "")
    return told if told in FORMATS else FORMATS[0]


def error_in(line: str) -> str:
    """What a line of a log in one of FORMATS says, if that is an error; "" of any other."""
    try:
        if line.startswith("{"):
            fields = json.loads(line)
            return str(fields["msg"]) if fields["level"] == "error" else ""
        if found := _LOGFMT_ERROR.match(line):
            return str(json.loads(found[1])) if found[1].startswith('"') else found[1]
    except (ValueError, LookupError, TypeError):
        # Of another program, which wrote there, too.
        return ""
    return line.partition(" ERROR ")[2]


def _logfmt(fields: LogFields) -> str:
    return " ".join(f"{name}={_value(text)}" for name, text in fields.items())


def _value(text: str) -> str:
    """As it is if nobody can misread it, else quoted."""
    if text and _PLAIN.issuperset(text):
        return text
    return json.dumps(text, ensure_ascii=False)
