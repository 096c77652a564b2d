"""What a server says of itself is told from what strangers have it say, and kept apart from it."""

import os

import pytest

from relay.adapters.server.link_trouble import cause_of, trouble_of
from relay.adapters.server.log_pipe import LogPipe
from relay.adapters.server.server_log import (
    CRASH_LINES_MAX,
    LINES_MAX,
    QUOTED,
    ServerLog,
    said_in,
)

BEGIN = "[21] 2026/11/28 00:13:27.881726"
DIALLED = f"{BEGIN} [INF] 127.0.0.1:7422 - lid:4 - Leafnode connection created for account: UPLINK"
STRANGER = f"{BEGIN} [ERR] 10.0.0.9:4711 - lid:9 - authentication error - Nkey"
FAILED = "Critical write error"


@pytest.mark.parametrize(
    ("line", "link", "text"),
    [
        (f"{BEGIN} [INF] Server is ready", "", "Server is ready"),
        (f'{STRANGER} "x"', "lid:9", 'authentication error - Nkey "x"'),
        (
            f"{BEGIN} [ERR] [::1]:9 - cid:12 - authentication error",
            "cid:12",
            "authentication error",
        ),
        (f"{BEGIN} [INF] 10.0.0.9:1 - lid_ws:7 - Leafnode", "lid_ws:7", "Leafnode"),
        (f"{BEGIN} [ERR] 10.0.0.9:1 - wid:7 - no - lid:3 - yes", "wid:7", "no - lid:3 - yes"),
        ("goroutine 1 [running]:", "", "goroutine 1 [running]:"),
    ],
)
def test_a_line_is_about_the_server_or_about_one_connection(line, link, text):
    assert said_in(line) == (link, text)


def test_a_line_break_in_what_is_quoted_begins_no_line():
    log = ServerLog()
    forged = f"{BEGIN} [ERR] {FAILED}"
    said = log.take(f"{BEGIN} [INF] 10.0.0.9:1 - lid:9 - closed - Remote: a\n{forged}\n\n")
    assert said == ("lid:9", "closed - Remote: a")
    assert len(log.lines) == 2
    assert [said_in(line).link for line in log.lines] == ["lid:9", QUOTED]


def test_a_crash_is_put_together_of_its_pieces_and_its_head_stays():
    log = ServerLog()
    ready = f"{BEGIN} [INF] Server is ready"
    assert log.take(f"{ready}\n") == ("", "Server is ready")
    pieces = ["panic: ", "no ", FAILED, "\n", "\ngoroutine ", "1", " [", "running", "]:\n"]
    for piece in pieces:
        assert log.take(piece).link == QUOTED, "it is believed nowhere"
    for number in range(3 * LINES_MAX):
        log.take(f"main.f({number})\n")
    assert log.lines[:3] == [ready, f"panic: no {FAILED}", "  | goroutine 1 [running]:"]
    assert len(log.lines) == 1 + CRASH_LINES_MAX
    log.take("exit")
    assert log.lines[-1] == "exit", "a piece that nothing follows"


def test_what_a_stranger_has_a_server_say_while_it_crashes_is_the_strangers():
    log = ServerLog()
    log.take("panic: ")
    said = log.take(f'{STRANGER} "Reloaded server configuration"\n')
    assert said.link == "lid:9"
    log.take("out of memory\n")
    assert [said_in(line).link for line in log.lines] == ["", "lid:9", ""]


def test_no_number_of_strangers_pushes_out_what_the_server_says_of_itself_and_its_link():
    log = ServerLog()
    own = [f"{BEGIN} [INF] Server is ready", DIALLED]
    for line in own:
        log.take(f"{line}\n")
    for number in range(3 * LINES_MAX):
        log.take(f'{STRANGER.replace("lid:9", f"lid:{number + 9}")} "{number}"\n')
    assert log.lines[:2] == own
    assert len(log.lines) == LINES_MAX + 2
    last = f"{BEGIN} [INF] 127.0.0.1:7422 - lid:4 - Leafnode connection closed: EOF"
    log.take(f"{last}\n")
    assert log.lines[-1] == last, "in the order in which they were said"
    assert trouble_of(log.lines) == "away"


@pytest.mark.parametrize(
    ("whole", "messages"), [(True, [b"a\nb\n", b"c\n"]), (False, [b"a\n", b"b\n", b"c\n"])]
)
def test_what_is_written_at_once_is_one_message_if_it_is_to_stay_whole(whole, messages):
    pipe = LogPipe(whole=whole)
    for said in (b"a\nb\n", b"c\n"):
        os.write(pipe.theirs, said)
    pipe.handed_over()
    assert list(pipe.messages()) == messages


def test_who_says_what_nobody_reads_is_ended_by_none_of_it_and_goes_on():
    pipe = LogPipe(whole=True)
    (kept,) = [os.dup(end) for end in pipe.ours_too]
    pipe.close()

    def say_on():
        while True:
            os.write(pipe.theirs, b"x" * 4096)

    with pytest.raises(BlockingIOError):
        say_on()
    pipe.handed_over()
    os.close(kept)


@pytest.mark.parametrize("kind", ["cid", "wid", "lid", "lid_ws", "mid"])
@pytest.mark.parametrize(
    "said",
    [
        "Leafnode connection created for account",
        "Authorization Violation",
        "Error trying to connect as leafnode",
        "x - lid:4 - Leafnode connection closed",
        "certificate has expired or is not yet valid",
    ],
)
def test_what_a_stranger_is_quoted_with_is_no_trouble_of_the_link(kind, said):
    line = f'{BEGIN} [ERR] 10.0.0.9:1 - {kind}:9 - authentication error - User "{said}"'
    closed = f"{BEGIN} [INF] 10.0.0.9:1 - {kind}:9 - Leafnode connection closed: Violation"
    log = [DIALLED, line, closed]
    assert trouble_of(log) == ""
    assert cause_of(log) == ("", "")
