"""Bytes made smaller, and opened within a limit that is known before.

The one importer of zstandard. Its contexts are kept, because to make one takes ten times as long as
to use it on a small value. They are used by one thread: the loop's.
"""

from __future__ import annotations

import zstandard

from schemas.values.refusals import CodecError

LEVEL = 3
KEPT_FOR_BYTES_MAX = 64 * 1024
"""A context keeps the room that its largest value took: for larger ones it is made anew."""
_COMPRESSOR = zstandard.ZstdCompressor(level=LEVEL)
_DECOMPRESSOR = zstandard.ZstdDecompressor()


def compress(plain: bytes) -> bytes:
    """A frame that names its size."""
    if len(plain) > KEPT_FOR_BYTES_MAX:
        return zstandard.ZstdCompressor(level=LEVEL).compress(plain)
    return _COMPRESSOR.compress(plain)


def decompress(frame: bytes, limit: int) -> bytes:
    """What a frame holds; raises CodecError if that is more, before it is opened, or unreadable."""
    try:
        # The library opens what names its own size whatever limit it is given.
        declared = zstandard.frame_content_size(frame)
        if not 0 <= declared <= limit:
            raise CodecError("", f"opens to {declared} bytes, at most {limit} are read")
        return _DECOMPRESSOR.decompress(frame, max_output_size=limit)
    except zstandard.ZstdError as error:
        raise CodecError("", f"not zstd: {error}") from error
