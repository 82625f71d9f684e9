"""Text packed for one HTML file: nothing in it can end or start a tag, whatever the text is."""

import base64
import hashlib
import json
import math
import zlib
from typing import Any

GZIP = 16 + zlib.MAX_WBITS


def pack(text: str) -> str:
    """Return text as base64 of gzip, the same bytes each time; browsers read it with DecompressionStream."""
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP)
    packed = packer.compress(text.encode("utf-8")) + packer.flush()
    return base64.b64encode(packed).decode("ascii")


def compact(value: Any) -> str:
    """Return a value as JSON without spaces. NaN is refused: a number that is not known is None."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def short(number: float) -> float | None:
    """Round to six significant digits, enough to draw and to print; None where it is not a number."""
    return float(f"{number:.6g}") if math.isfinite(number) else None


def script_source(code: str) -> str:
    """Return what a content security policy calls an inline script: the hash of its text."""
    digest = hashlib.sha256(code.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
