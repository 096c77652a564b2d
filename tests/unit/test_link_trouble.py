"""What a node's own server says of its link, in words for a person."""

import pytest

from relay.adapters.server import link_trouble
from relay.adapters.server.link_trouble import NOT_LET_IN, LinkNews, cause_of, trouble_of

TRYING = "[ERR] Error trying to connect as leafnode to remote server"
FOREIGN = "[ERR] TLS leafnode handshake error: x509: certificate signed by unknown authority"
REFUSED = f'{TRYING} "c:7422" (attempt 1): dial tcp 10.0.0.1:7422: connect: connection refused'

OPENED = "[INF] 10.0.0.1:7422 - lid:9 - Leafnode connection created for account: UPLINK"
CLOSED = "[INF] 10.0.0.1:7422 - lid:9 - Leafnode connection closed: Read Error"
NOT_TAKEN = "[ERR] 10.0.0.1:7422 - lid:9 - Leafnode Error 'Authorization Violation'"
UNSHAKEN = "[INF] 10.0.0.1:7422 - lid:9 - Leafnode connection closed: TLS Handshake Failure"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ([REFUSED], "nobody listens there"),
        ([f'{TRYING} "c" (attempt 1): lookup c: no such host'], "its name cannot be looked up"),
        (
            [f'{TRYING} "c" (attempt 1): lookup c on 10.0.0.1:53: network is unreachable'],
            "its name cannot be looked up",
        ),
        ([f'{TRYING} "c" (attempt 1): dial tcp 10.0.0.1:443: i/o timeout'], "nothing answers"),
        (
            [f'{TRYING} "c": failed to connect to proxy: dial tcp: connect: connection refused'],
            "the proxy on the way out is not reached: nobody listens there",
        ),
        ([FOREIGN, REFUSED], "none of the authorities signed"),
        ([REFUSED, FOREIGN], "none of the authorities signed"),
        ([FOREIGN, "[INF] Leafnode connection created", REFUSED], "nobody listens there"),
        ([REFUSED, "[INF] Leafnode connection created"], ""),
        ([OPENED, CLOSED, OPENED, CLOSED], "ends it at once"),
        ([OPENED, CLOSED], ""),
        ([OPENED, UNSHAKEN, OPENED, UNSHAKEN], "it does not speak TLS"),
        ([OPENED, FOREIGN, UNSHAKEN, OPENED, FOREIGN, UNSHAKEN], "none of the authorities signed"),
        ([OPENED, CLOSED, OPENED, CLOSED, REFUSED], "nobody listens there"),
        (["[DBG] route: connection refused"], ""),
    ],
)
def test_the_cause_that_tells_most_is_said(log, cause):
    assert cause in cause_of(log)[0]
    assert bool(cause) is bool(cause_of(log)[0])


def test_what_becomes_of_another_link_is_no_trouble_while_one_is_open():
    other = [line.replace("lid:9", "lid:10") for line in (OPENED, NOT_TAKEN, CLOSED)]
    opened, refused, closed = other
    assert trouble_of([opened, OPENED, refused, closed]) == ""
    assert trouble_of([OPENED, opened, refused, closed]) == ""
    assert trouble_of([OPENED, NOT_TAKEN, CLOSED, *other]) == NOT_LET_IN
    assert trouble_of([*other, OPENED, CLOSED, REFUSED]) == "away"


def test_what_children_do_and_say_is_no_trouble_of_the_link_to_the_parent():
    child = "[INF] 10.0.0.9:4711 - lid:12 -"
    came, left = f"{child} Leafnode connection created", f"{child} Leafnode connection closed: EOF"
    lied = f"{child} Leafnode Error 'Authorization Violation'"
    foreign = f"{child} TLS leafnode handshake error: certificate has expired or is not yet valid"
    web = [line.replace("lid:12", "lid_ws:9") for line in (came, left)]
    assert trouble_of([OPENED, *web]) == ""
    assert trouble_of([OPENED, came, left]) == trouble_of([OPENED, came, lied]) == ""
    assert trouble_of([OPENED, CLOSED, came]) == "away"
    assert cause_of([OPENED, CLOSED, came, foreign, REFUSED])[0] == "nobody listens there"
    assert trouble_of([OPENED, NOT_TAKEN, came, left]) == NOT_LET_IN


def test_a_log_that_says_nothing_new_is_not_judged_again(monkeypatch):
    judged = []

    def counted(log):
        judged.append(len(log))
        return trouble_of(log)

    monkeypatch.setattr(link_trouble, "trouble_of", counted)
    log, link = [OPENED], LinkNews()
    said = []
    for more in ([], [], [CLOSED, REFUSED], [], [OPENED], []):
        log += more
        link.look(list(log))
        said.append((link.trouble, link.cause[0]))
    away = ("away", "nobody listens there")
    assert said == [("", ""), ("", ""), away, away, ("", ""), ("", "")]
    assert judged == [1, 3, 4]
    link.look(log[1:])
    assert judged == [1, 3, 4, 3]
