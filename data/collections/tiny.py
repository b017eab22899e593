"""The small collection that comes with the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spotsigs.formats.folder import Folder, SortedBy


@dataclass(frozen=True, kw_only=True)
class Tiny(Folder):
    """Some forty short pages, for trials and tests; wherever the package lies, from any folder.

    Parameters
    ----------
    path : str
        The pages.
    clusters : SortedBy
        Their sub-folders are the truth.
    """

    path: str = str(Path(__file__).parents[1] / "tiny")
    clusters: SortedBy = SortedBy.folders
