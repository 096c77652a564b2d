"""A line of a structured log is one line, and reads back as what was said."""

import json
import logging
import shlex
import sys

import pytest

from leafcast.daemon.logs import FORMATS, error_in, format_told, formatter

BAD = r'ts=1 level=error logger=a msg="\x"'
SAID = ['quoted "word"', "two\nlines", "plain", "", "a=b", "naïve ☃"]


def record(text, exc_info=None):
    return logging.LogRecord("leafcast", logging.WARNING, __file__, 1, text, (), exc_info)


@pytest.mark.parametrize("text", SAID)
def test_json_lines_read_back(text):
    line = formatter("json").format(record(text))
    assert "\n" not in line
    said = json.loads(line)
    assert (said["msg"], said["level"], said["logger"]) == (text, "warning", "leafcast")


@pytest.mark.parametrize("text", SAID)
def test_logfmt_lines_read_back(text):
    line = formatter("logfmt").format(record(text))
    assert "\n" not in line
    said = dict(part.split("=", 1) for part in shlex.split(line))
    assert said["level"] == "warning"
    assert said["msg"].replace("\\n", "\n") == text


@pytest.mark.parametrize("name", FORMATS)
def test_an_error_is_found_in_a_log_of_each_format(name):
    for text in set(SAID) - {"two\nlines"}:
        said = logging.LogRecord("leafcast", logging.ERROR, __file__, 1, text, (), None)
        assert error_in(formatter(name).format(said)) == text
        assert not error_in(formatter(name).format(record(text)))


@pytest.mark.parametrize(
    "line", ["{", "{}", '{"level": "error"}', "[1]", "Traceback:", "level=error", BAD]
)
def test_what_is_no_line_of_a_log_is_no_error(line):
    assert not error_in(line)


def test_a_daemon_logs_in_the_format_that_it_was_told(monkeypatch):
    for told, is_so in [("json", "json"), ("logfmt", "logfmt"), ("", "text"), ("xml", "text")]:
        monkeypatch.setenv("LEAFCAST_LOG_FORMAT", told)
        assert format_told() == is_so
    monkeypatch.delenv("LEAFCAST_LOG_FORMAT")
    assert format_told() == "text"


@pytest.mark.parametrize("name", ["json", "logfmt"])
def test_a_traceback_stays_on_its_line(name):
    try:
        int("boom")
    except ValueError:
        line = formatter(name).format(record("failed", sys.exc_info()))
    assert "\n" not in line
    assert "boom" in line
