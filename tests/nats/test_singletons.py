"""Placements that want the status of their copy back, at one edge, on real servers."""

import pytest

from benchmarks.singletons import measure

pytestmark = [pytest.mark.nats, pytest.mark.timeout(180)]

PLACEMENTS = 150


async def test_each_of_many_placements_of_one_edge_is_exact_and_shows_the_status_of_its_copy(
    tmp_path,
):
    seen = await measure(tmp_path, PLACEMENTS)
    print(f"\n{PLACEMENTS} exact after {seen.exact:.1f} s, shown after {seen.shown:.1f} s")
