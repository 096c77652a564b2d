"""The formats of `-o`, by name."""

from __future__ import annotations

from typing import Literal

Format = Literal["table", "wide", "name", "json", "yaml", "jsonpath"]
