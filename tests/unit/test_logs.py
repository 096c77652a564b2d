"""A line of a structured log is one line, and reads back as what was said."""

import json
import logging
import shlex
import sys

import pytest

from leafcast.daemon.logs import formatter

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


@pytest.mark.parametrize("name", ["json", "logfmt"])
def test_a_traceback_stays_on_its_line(name):
    try:
        int("boom")
    except ValueError:
        line = formatter(name).format(record("failed", sys.exc_info()))
    assert "\n" not in line
    assert "boom" in line
