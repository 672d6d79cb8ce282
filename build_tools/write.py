"""write: Page -> files. The only writer of pages; it owns its folder and nothing else."""

import os
from collections.abc import Iterable
from pathlib import Path

from build_tools.model import Page


def write(pages: Iterable[Page], folder: Path) -> list[Path]:
    """Makes `folder` hold exactly the pages. Touches a file only if its bytes change; returns the changed ones."""
    wanted = {folder / page.uri: page.text.encode("utf-8") for page in pages}
    changed = []
    for path, data in wanted.items():
        if not path.is_file() or path.read_bytes() != data:
            _replace(path, data)
            changed.append(path)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif not path.is_dir() and path not in wanted:
            path.unlink()
            changed.append(path)
    return changed


def _replace(path: Path, data: bytes) -> None:
    """Writes beside the file and swaps it in, so that no reader ever sees half a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    fresh.write_bytes(data)
    fresh.replace(path)
