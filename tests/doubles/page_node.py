"""A node below the centre that nobody runs, as its own page asks it."""

from typing import Any

from relay.adapters.clock import SystemClock
from tests.doubles.page_facts import counts

Form = dict[str, Any]
HERE: Form = {
    "nowMs": 0,
    "stale": False,
    "outdated": False,
    "orphaned": False,
    "headOnly": False,
    "missing": [],
    "missingCount": 0,
    "refusedMs": None,
}


def held(name: str, whole: int = 3, here: Form | None = None, **more: Any) -> Form:
    """A placement that it holds."""
    return {
        "name": name,
        "generation": 41,
        "waitingFor": more.pop("waitingFor", []),
        "here": {**HERE, **(here or {})},
        **counts(whole, **more),
    }


def child(name: str, **more: Any) -> Form:
    form: Form = {"name": name, "isEdge": True, "silentSinceMs": None, "inSession": True}
    return {**form, "inStep": True, "left": False, "joined": True, "lag": 0, **more}


class InventedNode:
    """A relay whose link to its parent comes and goes, and is away now."""

    def __init__(self, **said: Any) -> None:
        now = SystemClock().now().wall_ms
        minute = 60_000
        pull = ("deployments.apps/shop/web", "ImagePullBackOff: no image web:2", 1, "/region-2/s-1")
        missing = {"missing": ["41fc" * 16, "9ab0" * 16], "missingCount": 2, "refusedMs": minute}
        changes = [
            {"atMs": now - at * 30_000, "state": "in session" if at % 2 else "not reached"}
            for at in range(2, 10)
        ]
        self.said: Form = {
            "path": "/region-2",
            "role": "relay",
            "version": "1.2.3",
            "nowMs": now,
            "link": {
                "state": "not reached",
                "sinceMs": now - minute,
                "startedMs": now - 300 * minute,
                "sessionMs": now - minute,
                "lostTimes": 4,
                "changes": changes,
                "cause": "nobody listens there",
                "remedy": "see whether it runs, and whether the port is right",
            },
            "snapshotMs": now - 5 * minute,
            "stale": False,
            "maintenance": False,
            "isDestination": False,
            "withheld": 1,
            "orphaned": 0,
            "unready": {},
            "objects": None,
            "held": [
                held("edgeplacement/shop", synced=2, failing=1, wrong=[pull]),
                held("edgeplacement/monitoring", here=missing, synced=0),
                held("bindingpolicy/ingress"),
            ],
            "heldCount": 3,
            "children": [
                child("s-1", silentSinceMs=now - 40 * minute, lag=3),
                child("s-2"),
                child("s-3", joined=False),
            ],
            "childCount": 3,
            **said,
        }

    async def here(self) -> Form:
        return self.said


def hostile_node(text: str) -> InventedNode:
    """A node whose every string that somebody else says is this text."""
    node = InventedNode()
    here = {"missing": [text], "missingCount": 1}
    wrong = [(text, text, 1, text)]
    node.said |= {
        "unready": {text: text},
        "held": [held(text, here=here, failing=1, synced=2, wrong=wrong, waitingFor=[text])],
        "children": [child(text, silentSinceMs=2**62)],
    }
    node.said["link"] |= {"cause": text, "remedy": text, "changes": [{"atMs": 1, "state": text}]}
    return node
