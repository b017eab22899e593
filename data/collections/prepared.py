"""Base of the collections that are fetched and written as JSON lines at first use."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from data.collections.fetching import replacing
from spotsigs.contracts import CopyableCollection, Shard
from spotsigs.formats.input_files import SHARD_BYTES
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.writers import Keep

_FORM = 1  # of the prepared file; part of its name


@dataclass(frozen=True, kw_only=True)
class PreparedCollection(CopyableCollection):
    """Collection that the first call fetches and writes to a jsonl file in the cache.

    Parameters
    ----------
    cache : str
        Folder of fetched packages and prepared collections.
    shard_bytes : int
        Bytes of the prepared file in a shard.
    """

    cache: str = "data/cache"
    shard_bytes: int = SHARD_BYTES

    @abstractmethod
    def _identity(self) -> tuple[str, object]:
        """Return the name of the prepared file, and everything that its content depends on, as JSON."""

    @abstractmethod
    def _records(self) -> Iterator[dict[str, str]]:
        """Fetch the collection, and yield id, cluster and content of each document."""

    def shards(self) -> Sequence[Shard]:
        """Return the shards; the first call fetches and prepares the collection."""
        return Jsonl(path=str(self.prepare()), shard_bytes=self.shard_bytes).shards()

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy the prepared file without the removed documents; see `spotsigs.contracts.CopyableCollection`."""
        Jsonl(path=str(self.prepare())).copy(folder, keep)

    def prepare(self) -> Path:
        """Return the path of the collection as a jsonl file, which the first call writes.

        Raises
        ------
        InputError
            If a release cannot be fetched, differs from its checksum, or contains no page.
        """
        name, choices = self._identity()
        key = sha256(json.dumps([_FORM, choices], sort_keys=True).encode()).hexdigest()[:12]
        prepared = Path(self.cache, f"{name}-{key}.jsonl")
        if not prepared.exists():
            with replacing(prepared) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
                for record in self._records():
                    out.write(json.dumps(record, ensure_ascii=False) + "\n")
        return prepared
