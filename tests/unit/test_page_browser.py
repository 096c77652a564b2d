"""The page in Debian's chromium: each view in light, dark and narrow, hostile texts, a lost server.

With LEAFCAST_SCREENSHOTS=FOLDER pictures of each view are left there.
`make pictures` takes that of the README.
"""

import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from leafcast.ask.failures import NotRunning
from tests.doubles.page_facts import InventedFacts
from tests.doubles.page_node import InventedNode, hostile_node
from tests.doubles.page_scenes import hostile_facts, troubled_facts
from tests.page_client import served
from tests.pictures import TAKEN

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        CHROMIUM is None, reason="NOT RUN: chromium is not installed (apt-get install chromium)"
    ),
]
SCREENSHOTS = os.environ.get("LEAFCAST_SCREENSHOTS", "")
PICTURE_OF_README = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "page.png"
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 360, "height": 760}
LOOKS = (("light", "light", WIDE), ("dark", "dark", WIDE), ("narrow", "light", NARROW))
VIEWS = (
    *("/placements", "/placements/epl/shop", "/tree", "/tree?as=table", "/tree/region-2"),
    *("/rollouts", "/rollouts/shop", "/events", "/requests", "/doctor", "/plan"),
    "/copy/region-2/site-1/edge-1?object=deployments.apps/shop/web",
    *("/proof/region-2/site-1/edge-1", "/trace/epl/shop"),
    "/proof/region-2/site-1/edge-1?object=configmaps/shop/cart",
)
SCRIPT = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>\u202e\x1b[2J"
WAIT_MS = 60_000
ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CUT = """() => [...document.querySelectorAll("main *")].filter((it) =>
    !it.closest(".hidden,.tile") && getComputedStyle(it).overflowY === "hidden" &&
    it.textContent.trim() && it.scrollHeight > it.clientHeight + 3
).map((it) => it.outerHTML.slice(0, 120))"""
"""Elements whose text is cut below; that of tiles is."""
CONTRAST = "color-contrast"
"""What a theme may change."""


@asynccontextmanager
async def opened(chromium, facts, acts=None, **settings):
    """The page in a browser that was let in; what it complains of; its server's address."""
    async with served(facts, acts) as (addresses, client):
        context = await chromium.new_context(viewport=WIDE, **settings)
        page = await context.new_page()
        page.set_default_timeout(WAIT_MS)
        complaints = []
        page.on("console", lambda it: complaints.append(it.text) if it.type == "error" else None)
        page.on("pageerror", lambda it: complaints.append(str(it)))
        await page.goto(await addresses.get())
        yield page, complaints, client.base
        await context.close()


async def settled(page, address):
    """Go there, and wait until the view has come."""
    await page.goto(address)
    await page.wait_for_selector("main[aria-busy='false']")
    if address.endswith("/plan"):
        await page.fill("textarea", "kind: A")
        await page.click("main button")
        await page.wait_for_selector("main table")


async def test_each_view_is_whole_in_light_dark_and_narrow(chromium):
    async with opened(chromium, troubled_facts()) as (page, complaints, base):
        for path in VIEWS:
            await settled(page, base + path)
            for name, scheme, size in LOOKS:
                await page.emulate_media(color_scheme=scheme)
                await page.set_viewport_size(size)
                wide = await page.evaluate("document.documentElement.scrollWidth")
                assert wide <= size["width"], f"{path} is {wide} wide at {size['width']}"
                assert await page.locator("main h1").inner_text()
                assert await page.evaluate(CUT) == [], (path, name)
                if SCREENSHOTS:
                    file = path.strip("/").translate(str.maketrans("/?=", "---"))
                    await page.screenshot(path=Path(SCREENSHOTS) / f"{file}-{name}.png")
                if TAKEN and (path, name) == ("/tree", "light"):
                    await page.screenshot(path=PICTURE_OF_README)
        assert complaints == []


async def obstacles(page, rules=ALL_RULES):
    """What keeps people from it, by axe-core."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright")
    said = (await axe.Axe().run(page, options={"runOnly": rules})).response
    assert CONTRAST in {it["id"] for it in said["passes"]}
    return [(it["id"], [node["html"] for node in it["nodes"]]) for it in said["violations"]]


@pytest.mark.long
async def test_nothing_of_a_view_keeps_people_from_it_who_see_or_type_otherwise(chromium):
    for facts, views in ((troubled_facts(), VIEWS), (InventedNode(), ("/here",))):
        async with opened(chromium, facts) as (page, complaints, base):
            for path in views:
                await settled(page, base + path)
                for name, scheme, size in LOOKS:
                    await page.emulate_media(color_scheme=scheme)
                    await page.set_viewport_size(size)
                    rules = [CONTRAST] if name == "dark" else ALL_RULES
                    assert await obstacles(page, rules) == [], (path, name)
            await page.keyboard.press("?")
            await page.wait_for_selector("#help[open]")
            assert await obstacles(page) == []
            await page.keyboard.press("Escape")
            if "/tree" in views:
                await settled(page, f"{base}/tree")
                await page.keyboard.press("/")
                await page.wait_for_selector("#search[open]")
                assert await obstacles(page) == []
            assert complaints == []


async def test_no_text_of_an_edge_becomes_a_script_or_an_element(chromium):
    async with opened(chromium, hostile_facts(SCRIPT)) as (page, complaints, base):
        for path in (*VIEWS, "/placements/epl/shop?at=/region-1/site-1", "/tree/region-1"):
            await settled(page, base + path)
            assert await page.locator("main img, main script").count() == 0
            assert not await page.evaluate("window.hurt")
            assert "\u202e" not in await page.inner_text("body")
        assert "onerror" in await page.inner_text("main")
        assert complaints == []


async def test_the_page_of_a_node_shows_it_cut_off_and_no_text_becomes_a_script(chromium):
    async with opened(chromium, InventedNode()) as (page, complaints, base):
        for name, scheme, size in LOOKS:
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size(size)
            await settled(page, f"{base}/")
            await page.wait_for_selector("h1:has-text('/region-2')")
            assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            if SCREENSHOTS:
                await page.screenshot(path=Path(SCREENSHOTS) / f"here-{name}.png", full_page=True)
        text = await page.inner_text("main")
        assert "Its parent is not reached: nobody listens there" in text
        assert "lost 4 times in the last 10 minutes" in text
        assert "2 pieces of content that did not come yet" in text
        assert await page.locator("#nav a").all_inner_texts() == ["This node"]
        assert await page.locator("#search-button").is_hidden()
        await page.goto(f"{base}/tree")
        await page.wait_for_selector("h1:has-text('There is no such page')")
        assert complaints == []
    async with opened(chromium, hostile_node(SCRIPT)) as (page, complaints, base):
        await settled(page, f"{base}/here")
        assert "onerror" in await page.inner_text("main")
        assert await page.locator("main img, main script").count() == 0
        assert not await page.evaluate("window.hurt")
        assert "\u202e" not in await page.inner_text("body")
        assert complaints == []


async def test_a_tree_that_is_away_is_a_banner_since_when_and_nothing_stays_green(chromium):
    facts = InventedFacts()
    async with opened(chromium, facts) as (page, _, base):
        await settled(page, f"{base}/placements")
        assert await page.locator("#banner").is_hidden()
        facts.fails = NotRunning("/var/lib/leafcast")
        await page.wait_for_selector("body.stale")
        banner = await page.inner_text("#banner")
        assert "The tree does not answer for" in banner
        assert "leafcast up" in banner
        assert "What is below is of" in banner
        facts.fails = None
        await page.wait_for_selector("body:not(.stale)")
        assert await page.locator("#banner").is_hidden()


async def test_a_page_whose_server_is_gone_says_so(chromium):
    page = await chromium.new_page()
    page.set_default_timeout(WAIT_MS)
    async with served(InventedFacts()) as (addresses, _):
        await page.goto(await addresses.get())
        await page.wait_for_selector("main[aria-busy='false']")
    await page.wait_for_selector("body.stale")
    assert "leafcast ui" in await page.inner_text("#banner")
    await page.close()


async def test_all_is_reached_by_keyboard(chromium):
    async with opened(chromium, troubled_facts()) as (page, complaints, base):
        await settled(page, f"{base}/tree")
        for key in "jjkj":
            await page.keyboard.press(key)
        assert "region-2" in await page.evaluate("document.activeElement.getAttribute('href')")
        await page.keyboard.press("Enter")
        await page.wait_for_function("location.pathname === '/tree/region-2'")
        await page.wait_for_selector("main[aria-busy='false'] [data-up]")
        await page.keyboard.press("u")
        await page.wait_for_function("location.pathname === '/tree'")
        await page.keyboard.press("/")
        await page.keyboard.type("monit")
        await page.wait_for_selector("#found a")
        await page.keyboard.press("Enter")
        await page.wait_for_function("location.pathname === '/placements/epl/monitoring'")
        await page.keyboard.press("f")
        await page.wait_for_selector("#keep-button[aria-pressed='true']")
        await page.keyboard.press("/")
        await page.wait_for_selector("#found a[href='/placements/epl/monitoring']")
        await page.keyboard.type("deploy web")
        await page.wait_for_selector("#found :text('object of epl/shop')")
        await page.keyboard.press("Enter")
        await page.wait_for_function("location.pathname === '/placements/epl/shop'")
        await page.wait_for_selector("#keep-button[aria-pressed='false']")
        await page.keyboard.press("?")
        assert await page.locator("#help").is_visible()
        await page.keyboard.press("Escape")
        assert await page.locator("#help").is_hidden()
        assert complaints == []


async def test_what_is_no_date_and_no_address_and_no_single_line_is_told_as_such(chromium):
    async with opened(chromium, troubled_facts()) as (page, complaints, base):
        await page.goto(f"{base}/placements/%")
        await page.wait_for_selector("h1:has-text('There is no such page')")
        said = await page.evaluate(
            """async () => {
                const { since, command } = await import("/static/words.js");
                const lines = command("a\\nb").querySelector("button");
                return [since(2 ** 62), lines, command("a").textContent];
            }"""
        )
        assert said == ["for a time that is not known", None, "acopy"]
        assert complaints == []


class Done:
    """Notes what is to be done."""

    def __init__(self):
        self.commands = []

    async def do(self, wanted):
        self.commands.append(wanted.command)
        return "it goes now"


async def test_an_act_shows_its_command_and_is_done_when_a_person_says_yes(chromium):
    acts = Done()
    async with opened(chromium, troubled_facts(), acts) as (page, complaints, base):
        assert await page.evaluate("location.hash") == ""
        await settled(page, f"{base}/requests")
        row = page.locator("tr", has_text="removal of epl/old-shop")
        await row.locator("button.act").click()
        assert "leafcast accept epl/old-shop" in await page.inner_text("#act")
        await page.click("#act button:text-is('No')")
        assert acts.commands == []
        await row.locator("button.act").click()
        await page.click("#act button:has-text('Yes')")
        await page.wait_for_selector("#act .note.good")
        if SCREENSHOTS:
            await page.screenshot(path=Path(SCREENSHOTS) / "act.png")
        assert acts.commands == ["leafcast accept epl/old-shop"]
        assert complaints == []


async def test_a_tree_that_gives_no_answer_is_told_of_though_the_server_is_there(chromium):
    async with opened(chromium, troubled_facts()) as (page, complaints, _):
        told = await page.evaluate(
            """async () => {
                const { Live } = await import("/static/live.js");
                const sources = [];
                class Source extends EventTarget {
                    constructor() { super(); sources.push(this); }
                    close() {}
                }
                const own = window.EventSource;
                window.EventSource = Source;
                const live = new Live("placements", {}, () => {}, () => {});
                window.EventSource = own;
                const tell = (name, said) => sources[0].dispatchEvent(
                    Object.assign(new Event(name), { data: JSON.stringify(said) }));
                tell("whole", { view: {}, asOfMs: 7 });
                tell("still", {});
                const before = live.failed;
                tell("still", { lateSinceMs: 7 });
                const late = [live.failed.away, live.failed.since, live.silent];
                tell("patch", { asOfMs: 8 });
                return [before, late, live.failed];
            }"""
        )
        assert told == [None, [True, 7, False], None]
        assert complaints == []


async def test_a_server_that_answers_no_json_is_told_as_one_that_does_not_answer(chromium):
    async with opened(chromium, troubled_facts()) as (page, _, base):
        await page.route("**/api/v1/**", lambda route: route.fulfill(status=502, body="gone"))
        await page.goto(f"{base}/placements")
        await page.wait_for_selector("#banner:has-text('does not answer')")
