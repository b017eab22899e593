"""The documents of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spotsigs.contracts import Collection, Shard
from spotsigs.errors import InputError


@dataclass(frozen=True, kw_only=True)
class StoredCollection(Collection):
    """All documents of ``store=``, including those added later; no page is read."""

    def shards(self) -> Sequence[Shard]:
        """Refuse: a store contains signatures, no pages."""
        raise InputError("data=stored is the documents of a store; name it with store=")
