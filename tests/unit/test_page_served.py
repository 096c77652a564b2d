"""The page served elsewhere: by TLS and its names alone, in a process that a centre keeps."""

import asyncio
import os
import signal
import ssl
from pathlib import Path

import pytest

from leafcast.ui.page_place import PagePlace, PagePlaceRefused, check_page_certificate, page_place
from leafcast.ui.page_process import ADDRESS_FILE, keep_page
from relay.adapters.clock import SystemClock
from relay.adapters.tls.authority import Authority, new_key, signing_request
from relay.adapters.tls.refusals import CertificateUnusable
from tests.awaiting import eventually
from tests.doubles.page_facts import InventedFacts
from tests.page_client import served

pytestmark = pytest.mark.timeout(120)
NAME = "leafcast.example"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - nobody listens there


@pytest.fixture
def place(tmp_path):
    files = tmp_path / "page.pem", tmp_path / "page.key"
    for file, text in zip(files, new_pair(), strict=True):
        put(file, text)
    return page_place("127.0.0.1", 0, [NAME], *files)


def new_pair():
    """A certificate, and its key."""
    now, key = SystemClock().now().wall_ms, new_key()
    return Authority.make("own", now).issue(signing_request(key, [NAME]), now), key


def put(file, text):
    draft = file.with_suffix(".new")
    draft.write_text(text)
    draft.replace(file)


async def asked(port, path="/", context=None, **headers):
    """The head of an answer, by TLS with a context."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    said = {"host": f"{NAME}:{port}", **headers, "connection": "close"}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        return (await reader.read()).decode(errors="replace").lower()
    finally:
        writer.close()


@pytest.fixture
def browser():
    context = ssl.create_default_context()
    # What is tried is the page and no authority: the certificate's own are tested with it.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_by_tls_it_answers_to_its_names_alone_and_its_cookie_goes_by_tls(place, browser):
    async with served(InventedFacts(), place=place) as (addresses, client):
        address = await addresses.get()
        base, _, token = address.partition("/?")
        assert base == f"https://{NAME}:{client.port}"
        head = await asked(client.port, f"/?{token}", browser)
        assert head.startswith("http/1.1 303")
        (cookie,) = (line for line in head.splitlines() if line.startswith("set-cookie"))
        assert "; secure" in cookie
        said = {"cookie": cookie.partition(": ")[2].partition(";")[0]}
        assert (await asked(client.port, "/", browser, **said)).startswith("http/1.1 200")
        for other in (
            {"host": f"127.0.0.1:{client.port}"},
            {"origin": f"http://{NAME}:{client.port}"},
            {"origin": "https://evil.example"},
        ):
            assert (await asked(client.port, "/", browser, **said | other)).startswith(
                "http/1.1 403"
            )
        assert (await asked(client.port, "/", browser)).startswith("http/1.1 401")
        # In clear nobody says a word.
        assert "http/1.1" not in await asked(client.port, "/", None, **said)


@pytest.mark.parametrize(
    ("host", "names", "files", "why"),
    [
        (EVERYWHERE, (), False, "sent in clear"),
        ("127.0.0.1", (NAME,), False, "without a certificate it has no names"),
        (EVERYWHERE, (), True, "no name is said"),
        (EVERYWHERE, ("https://x",), True, "is no name of a host"),
    ],
)
def test_elsewhere_nothing_is_served_in_clear_or_without_a_name(place, host, names, files, why):
    two = (place.tls.certificate, place.tls.key) if files else (None, None)
    with pytest.raises(PagePlaceRefused, match=why):
        page_place(host, 7780, names, *two)


def test_a_certificate_without_its_key_or_for_other_names_is_refused(place):
    with pytest.raises(PagePlaceRefused, match="goes with its key"):
        page_place(EVERYWHERE, 7780, [NAME], place.tls.certificate, None)
    other = PagePlace(EVERYWHERE, 7780, ("other.example",), place.tls)
    with pytest.raises(CertificateUnusable, match=f"it is for {NAME}, not for other.example"):
        check_page_certificate(other, SystemClock().now().wall_ms)
    check_page_certificate(place, SystemClock().now().wall_ms)


async def test_a_certificate_is_taken_up_with_its_key_and_until_then_the_one_before_is_shown(
    place, browser, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("leafcast.ui.serving.LOOK_SECONDS", 0.01)
    certificate, key = new_pair()
    wanted = ssl.PEM_cert_to_DER_cert(certificate)

    async def shown():
        _, writer = await asyncio.open_connection("127.0.0.1", client.port, ssl=browser)
        try:
            return writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()

    async with served(InventedFacts(), place=place) as (_, client):
        before = await shown()
        put(tmp_path / "page.pem", certificate)
        await eventually(lambda: "are not taken up" in caplog.text)
        assert await shown() == before
        put(tmp_path / "page.key", key)
        while await shown() != wanted:
            await asyncio.sleep(0.02)
    assert caplog.text.count("are not taken up") == 1, "said at each look"


@pytest.mark.slow
async def test_the_page_of_a_centre_is_started_again_when_it_ends_and_ends_with_it(
    place, browser, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("leafcast.ui.page_process.AGAIN_SECONDS", 0.01)
    folder, clock = tmp_path / "data", SystemClock()
    file = folder / ADDRESS_FILE

    def address():
        return file.read_text() if file.exists() else ""

    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(keep_page(place, folder, clock))
        # Where it cannot be started, that is said, and tried again.
        await eventually(lambda: caplog.text.count("the page cannot be started: ") > 1)
        folder.mkdir()
        first = await eventually(address)
        assert file.stat().st_mode & 0o077 == 0
        pids = [it for it in Path("/proc").iterdir() if it.name.isdigit()]
        (page,) = (it for it in pids if _is_page_of(it, file))
        os.kill(int(page.name), signal.SIGKILL)
        second = await eventually(lambda: address() if address() != first else "")
        port = int(second.partition(f"{NAME}:")[2].partition("/")[0])
        # There is no tree yet; it is let in, and told so by the page.
        token = second.strip().partition("/?")[2]
        assert (await asked(port, f"/?{token}", browser)).startswith("http/1.1 303")
        await eventually(lambda: address() not in {first, second})
        keeping.cancel()
    with pytest.raises(ConnectionRefusedError):
        await asked(port, "/", browser)


def _is_page_of(process, file):
    try:
        words = (process / "cmdline").read_text().split("\0")
    except OSError:
        return False
    return "ui" in words and str(file) in words
