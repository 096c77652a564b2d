"""Changes without end: what each node takes of memory and storage is bounded."""

import pytest

from benchmarks.soak import MEASURES, grow, soak

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

SECONDS = 20.0


async def test_a_tree_under_changes_without_end_stays_as_large_as_it_is(tmp_path):
    tree = await grow(tmp_path)
    try:
        seen = await soak(tree, SECONDS)
    finally:
        await tree.close()
    print(f"\n{seen.changes} changes in {SECONDS:.0f} s")
    for path, node in seen.nodes.items():
        for what, samples in node.samples.items():
            middle, last = map(MEASURES[what].text, MEASURES[what].thirds(samples))
            print(f"{path} {what}: {middle}, then {last}")
        print(f"{path} {node.kept}")
    assert not seen.grown(brief=True)
