"""Results by what they rest on. Entries are never updated, only added; a damaged one counts as absent."""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path


class Cache:
    """Holds where entries lie, what all keys share, and which entries this run has asked for."""

    def __init__(self, folder: Path | None, fingerprint: str):
        self.folder = folder  # None: nothing is kept
        self.fingerprint = fingerprint
        self.asked: set[str] = set()

    def key(self, stage: str, data: object) -> str:
        text = json.dumps([stage, self.fingerprint, data], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str) -> object | None:
        self.asked.add(key)
        if self.folder is None:
            return None
        try:
            return json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key: str, data: object) -> None:
        if self.folder is None:
            return
        # A cache that cannot be written costs time, not correctness.
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, ensure_ascii=False)
            os.replace(name, self.folder / f"{key}.json")

    def prune(self) -> None:
        """Drops what this run did not ask for."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in self.folder.glob("*.json"):
            if path.stem not in self.asked:
                with contextlib.suppress(OSError):
                    path.unlink()
