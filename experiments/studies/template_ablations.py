"""Frame-aware suppression without some of its steps, for the table that shows what each is good for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from spotsigs.records import Signatures
from spotsigs.signatures.extract import count_signatures
from spotsigs.signatures.main_content import LINK
from spotsigs.signatures.template_kernels import Rules
from spotsigs.signatures.template_removal import (
    FramedSpots,
    PageBlocks,
    features_of,
    find_frames,
    said,
    spots_of_frames,
    suppressed,
)


@dataclass(frozen=True, kw_only=True)
class Ablated(FramedSpots):
    """Frame-aware suppression without one of its steps.

    Attributes
    ----------
    everywhere : bool
        Drop a spot where the mates of many of its pages say so; otherwise where those of the page itself do.
    narrowed : bool
        Narrow what is left to the main part.
    unsaid : bool
        Drop stretches of boilerplate from what was narrowed.
    anywhere : bool
        Count a main part's spots wherever they stand on the other page; otherwise in its main part.
    per_spot : bool
        Doubtful neighbours agree if most of what each shares is shared by most; otherwise if all share nearly all.
    around : bool
        Look at where doubtful neighbours' shared spots stand.
    travels : bool
        Where that is so, main parts may be the same, if what is the pages' own travels; otherwise they never are.
    """

    label: ClassVar[str] = "SpotSigs, framed in part"

    everywhere: bool = True
    narrowed: bool = True
    unsaid: bool = True
    anywhere: bool = True
    per_spot: bool = True
    around: bool = True
    travels: bool = True

    @property
    def rules(self) -> Rules:
        """What decides which neighbours are mates."""
        return super().rules._replace(
            anywhere=self.anywhere, per_spot=self.per_spot, around=self.around, travels=self.travels
        )

    def refine(self, outlines: Signatures, *, threads: int | None = None, scratch: Path | None = None) -> Signatures:
        """Turn outlines into signatures, see `spotsigs.signatures.template_removal.FramedSpots.refine`."""
        blocks = PageBlocks(threads, scratch)
        pages = features_of(outlines, blocks)
        dropped = find_frames(outlines, pages, self.rules, self.sample, blocks)
        if self.everywhere:
            dropped = spots_of_frames(pages, dropped, self.share, blocks)
        if self.narrowed and self.unsaid:
            return said(outlines, pages, dropped, self.share, self.chance, blocks)
        if self.narrowed:
            return suppressed(outlines, pages, dropped, blocks)
        rows = []
        for page in range(len(outlines)):
            span = slice(pages.spot_indptr[page], pages.spot_indptr[page + 1])
            entries = slice(outlines.indptr[page], outlines.indptr[page + 1])
            spots = outlines.hashes[entries][outlines.counts[entries] != LINK]
            rows.append(count_signatures(spots[~np.isin(spots, pages.spots[span][dropped[span]])]))
        return replace(
            outlines,
            indptr=np.cumsum([0, *(len(hashes) for hashes, _ in rows)], dtype=np.int64),
            hashes=np.concatenate([np.empty(0, np.uint64), *(hashes for hashes, _ in rows)]),
            counts=np.concatenate([np.empty(0, np.int32), *(counts for _, counts in rows)]),
        )
