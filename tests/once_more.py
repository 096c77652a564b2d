"""Run pytest, and what failed with servers once more, alone: `python -m tests.once_more -n 3`.

A test that starts servers waits for what they do. Beside two other processes on two cores a server
may pause for longer than any deadline allows for. So up to `MOST` tests of servers are run again,
with the machine to themselves; the run names them at its end, as each is a fault to be found. A
test that only computes fails for good: it depends on nothing but its own code.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests import sharing

MOST = 3
"""More than this have a cause that the machine's load is not."""
TESTS_FAILED = 1
"""What pytest exits with when all ran and some failed."""
LAST_FAILED = Path(".pytest_cache", "v", "cache", "lastfailed")


def run_again(failed: Sequence[str]) -> list[str]:
    """Which of the failed tests, by their node ids, are run once more: all of them or none."""
    computed = any(sharing.group_of(test) == sharing.COMPUTED for test in failed)
    return [] if computed or len(failed) > MOST else sorted(failed)


def main(arguments: Sequence[str]) -> int:
    """Run pytest with these arguments; its exit status, or that of the second run."""
    pytest = [sys.executable, "-m", "pytest"]
    LAST_FAILED.unlink(missing_ok=True)
    status = subprocess.run([*pytest, *arguments], check=False).returncode
    if status != TESTS_FAILED or not LAST_FAILED.exists():
        return status
    again = run_again([*json.loads(LAST_FAILED.read_text())])
    if not again:
        return status
    print(
        "\nThese failed beside others. They run once more, alone:", *again, sep="\n  ", flush=True
    )
    status = subprocess.run([*pytest, "-v", *again], check=False).returncode
    outcome = "At least one failed alone, too" if status else "They failed beside others only"
    print(f"\n{outcome}:", *again, sep="\n  ")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
