"""The documents that a store holds already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spotsigs.errors import InputError
from spotsigs.records import Collection, Shard


@dataclass(frozen=True, kw_only=True)
class StoredCollection(Collection):
    """All documents of ``store=``, also those that were added later: nothing is read again."""

    def shards(self) -> Sequence[Shard]:
        """Refuse: a store holds signatures, no pages."""
        raise InputError("data=stored stands for the documents of a store; name it with store=")
