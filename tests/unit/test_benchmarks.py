"""Benchmarks are all measured and told of, and the trees that they stand on work."""

import re
from pathlib import Path

from benchmarks.core_tree import FIRST, CoreTree

ROOT = Path(__file__).resolve().parents[2]
REGIONS, EDGES = 2, 3
WINDOW_SECONDS = 0.15


def measured():
    """The modules that run by themselves and print a table."""
    texts = {path.stem: path.read_text() for path in (ROOT / "benchmarks").glob("*.py")}
    return {
        name
        for name, text in texts.items()
        if "__main__" in text and re.search(r"\bReport\(", text)
    }


def test_make_bench_runs_each_benchmark():
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    listed = re.search(r"^BENCHES := (.*)$", text, re.MULTILINE)[1].split()
    assert sorted(listed) == sorted(measured())


def test_the_page_of_results_names_each_benchmark():
    text = (ROOT / "benchmarks" / "results" / "README.md").read_text()
    assert {name for name in measured() if not re.search(rf"\b{name}\b", text)} == set()


def test_a_change_comes_to_all_edges_of_the_core_s_tree_and_is_counted():
    tree = CoreTree(REGIONS, EDGES)
    tree.change()
    for region in [path for path in tree.hosts if not path.is_root]:
        host = tree.hosts[region]
        assert host.ends.keys() == set(tree.edges)
        tree.arrive(region, tree.reports(region, tree.edges, "synced", FIRST))
    for _ in range(3):
        tree.run(WINDOW_SECONDS)
    count = tree.count()
    assert count.exact
    assert count.summary.states == {"synced": REGIONS * EDGES}
