"""By which rule a placement's objects are cleaned before they go out."""

from __future__ import annotations

from typing import Final, Literal

Cleaning = Literal["AsWritten", "KubeStellar"]
AS_WRITTEN: Final = "AsWritten"
"""What a person said goes out; what an API server handed out itself does not."""
KUBESTELLAR: Final = "KubeStellar"
"""What KubeStellar takes off is taken off, whoever said it."""
