"""Outlines that are read once for all schemes that look at the same collection in different ways."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from spotsigs.records import Signatures
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_removal import FramedSpots


@dataclass(frozen=True, kw_only=True)
class Outlined(FramedSpots):
    """The outlines that frame-aware suppression begins with, as they are."""

    @classmethod
    def of(cls, scheme: FramedSpots) -> Outlined:
        """Return what gives the outlines of a scheme: they depend on its spots alone."""
        return cls(**{part.name: getattr(scheme, part.name) for part in fields(SpotSignatures)})

    def refine(self, outlines: Signatures, *, threads: int | None = None, scratch: Path | None = None) -> Signatures:
        """Return the outlines."""
        return outlines
