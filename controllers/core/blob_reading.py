"""Reading content without I/O: a generator asks for blobs, and is sent those that are there."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TypeAlias, TypeVar

from schemas.content.blobs import Reference
from schemas.values.identity import ContentHash

T = TypeVar("T")

BlobReading: TypeAlias = Generator[tuple[Reference, ...], Mapping[ContentHash, bytes], T]
"""Yields references to be loaded; is sent the plain bytes of those found, checked; returns T."""
