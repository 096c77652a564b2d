"""How a daemon logs: as text for people, or each line as logfmt or JSON for programs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import click

TEXT = "%(asctime)s %(levelname)s %(message)s"
FORMATS = ("text", "logfmt", "json")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+@")

log_format_option = click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How each line of the log is written.",
)

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


def _logfmt(fields: LogFields) -> str:
    return " ".join(f"{name}={_value(text)}" for name, text in fields.items())


def _value(text: str) -> str:
    """As it is if nobody can misread it, else quoted."""
    if text and _PLAIN.issuperset(text):
        return text
    return json.dumps(text, ensure_ascii=False)
