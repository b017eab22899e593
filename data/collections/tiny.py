"""The small collection of the checkout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spotsigs.formats.folder import Folder, SortedBy


@dataclass(frozen=True, kw_only=True)
class Tiny(Folder):
    """About forty short pages for trials and tests; the path does not depend on the working directory.

    Parameters
    ----------
    path : str
        Folder of the pages.
    clusters : SortedBy
        Source of the truth: the sub-folders.
    """

    path: str = str(Path(__file__).parents[1] / "tiny")
    clusters: SortedBy = SortedBy.folders
