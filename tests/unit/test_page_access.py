"""Who may see the page: one browser for each token, by the page's own address only."""

import pytest

from leafcast.ui.access import (
    BROWSER_SECONDS_MAX,
    BROWSERS_MAX,
    HEADERS,
    Address,
    PageEntrance,
)
from relay.adapters.clock import SystemDice

HOST = {"host": "127.0.0.1:7780"}
NOW = 1_000.0


@pytest.fixture
def entrance():
    return PageEntrance(Address("127.0.0.1", 7780), SystemDice())


def token_of(address):
    return address.partition("?token=")[2]


def let_in(entrance):
    return {entrance.cookie: entrance.take(token_of(entrance.new_address()), NOW).cookie}


def test_a_token_lets_one_browser_in_and_is_void_then(entrance):
    token = token_of(entrance.new_address())
    cookies = {entrance.cookie: entrance.take(token, NOW).cookie}
    assert entrance.judge(HOST, cookies, NOW) == "let in"
    assert entrance.take(token, NOW) is None


def test_a_former_token_is_void_once_there_is_a_newer_one(entrance):
    former = token_of(entrance.new_address())
    newer = token_of(entrance.new_address())
    assert entrance.take(former, NOW) is None
    assert entrance.take(newer, NOW)


@pytest.mark.parametrize("token", ["", "x", "\ud800", "0" * 64])
def test_a_wrong_token_lets_nobody_in(entrance, token):
    entrance.new_address()
    assert entrance.take(token, NOW) is None


def test_a_browser_is_let_in_for_some_hours_and_then_shows_a_token_again(entrance):
    cookies = let_in(entrance)
    late = NOW + BROWSER_SECONDS_MAX
    assert entrance.until(cookies) == late
    assert entrance.judge(HOST, cookies, late - 1) == "let in"
    assert entrance.judge(HOST, cookies, late) == "no cookie"


def test_before_there_is_a_token_nothing_is_one(entrance):
    assert entrance.take("", NOW) is None


@pytest.mark.parametrize("cookie", ["", "x", "\udcff"])
def test_without_its_cookie_a_browser_is_not_let_in(entrance, cookie):
    let_in(entrance)
    assert entrance.judge(HOST, {entrance.cookie: cookie}, NOW) == "no cookie"
    assert entrance.judge(HOST, {}, NOW) == "no cookie"


@pytest.mark.parametrize(
    "host", ["evil.example:7780", "127.0.0.1", "127.0.0.1:7781", "", "127.0.0.1:7780.evil.example"]
)
def test_a_name_that_somebody_else_has_point_here_is_refused(entrance, host):
    assert entrance.judge({"host": host}, let_in(entrance), NOW) == "another host"


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7780", "localhost:7780", "LOCALHOST:7780", "[::1]:7780"]
)
def test_the_names_of_this_machine_are_good(entrance, host):
    assert entrance.judge({"host": host}, let_in(entrance), NOW) == "let in"


def test_the_port_that_http_has_anyway_may_be_left_out():
    entrance = PageEntrance(Address("127.0.0.1", 80), SystemDice())
    cookies = let_in(entrance)
    for host in ("127.0.0.1", "127.0.0.1:80", "localhost", "[::1]"):
        assert entrance.judge({"host": host, "origin": f"http://{host}"}, cookies, NOW) == "let in"
    assert entrance.judge({"host": "evil.example"}, cookies, NOW) == "another host"


@pytest.mark.parametrize(
    "said",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:7780"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        # Another port of this machine has the same cookies.
        {"sec-fetch-site": "same-site"},
    ],
)
def test_what_another_page_sends_is_refused_though_it_has_the_cookie(entrance, said):
    assert entrance.judge(HOST | said, let_in(entrance), NOW) == "another origin"


def test_so_many_browsers_stay_and_one_more_shuts_out_the_first(entrance):
    browsers = [let_in(entrance) for _ in range(BROWSERS_MAX + 1)]
    verdicts = [entrance.judge(HOST, cookies, NOW) for cookies in browsers]
    assert verdicts == ["no cookie"] + ["let in"] * BROWSERS_MAX


def test_no_script_runs_but_the_page_s_own_and_nothing_leaves_its_origin():
    policy = dict(rule.split(" ", 1) for rule in HEADERS["Content-Security-Policy"].split("; "))
    assert (
        policy.pop("default-src") == policy.pop("base-uri") == policy.pop("form-action") == "'none'"
    )
    assert policy["script-src"] == "'self'"
    sources = {name: said for name, said in policy.items() if name.endswith("-src")}
    assert set(sources.values()) == {"'self'"}
    assert policy["require-trusted-types-for"] == "'script'"
