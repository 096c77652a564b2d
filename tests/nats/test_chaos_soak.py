"""Changes without end: what each node takes of memory and storage is bounded."""

import pytest

from benchmarks.soak import grow, soak, thirds

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS = 20.0
SLACK_BYTES = 12_000_000


async def test_a_tree_under_changes_without_end_stays_as_large_as_it_is(tmp_path):
    tree = await grow(tmp_path)
    try:
        seen = await soak(tree, SECONDS)
    finally:
        await tree.close()
    print(f"\n{seen.changes} changes in {SECONDS:.0f} s")
    for path, node in seen.nodes.items():
        for what, samples in node.sizes.items():
            middle, last = thirds(samples)
            print(f"{path} {what}: {middle / 1e6:.1f}, then {last / 1e6:.1f} MB")
        for what, samples in node.held.items():
            print(f"{path} {what}: {samples[0]}, {thirds(samples)}")
        print(f"{path} {node.kept}")
    assert not seen.grown(SLACK_BYTES)
