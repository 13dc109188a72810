"""What weights are, whatever they are called: a hash of the files that hold them."""

from __future__ import annotations

import hashlib
from pathlib import Path


def fingerprint(folder: str | Path) -> str:
    """SHA-256 (hex) of a folder's safetensors files in the order of their names. Raises ValueError for none."""
    files = sorted(Path(folder).glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder} holds no safetensors file")
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while data := opened.read(1 << 20):
                digest.update(data)
    return digest.hexdigest()
