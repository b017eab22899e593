"""The checked configuration of a run, the same for the command and ``python run.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.clustering.decisions import Keep
from spotsigs.contracts import Matcher, SignatureScheme
from spotsigs.engines import Engine
from spotsigs.exact_duplicates import Sameness
from spotsigs.signatures.boilerplate import Boilerplate
from spotsigs.signatures.idf import IdfFilter

AUTO = "auto"
"""Value of tau for a threshold that the similarities of the collection suggest."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A checked configuration with all parts of the stages.

    Attributes
    ----------
    collection, text, signature, idf_filter, matcher, engine : object
        Parts of the stages, see `spotsigs.contracts`.
    experiment : object or None
        Called with these settings instead of a single run.
    auto : bool
        The threshold is suggested; ``tau`` and that of the matcher are the lowest one considered.
    tau, sets, copies, clusters, keep, copy, page, store, add, query, workers, threads, seed, strict, timing
        Root keys.
    memory : int or None
        Bytes for all processes of a run on disk; None for a run in memory.
    names : dict of str to str
        The user's choice in each group, for example ``{"matcher": "spotsigs"}``.
    boilerplate : Boilerplate
        Treatment of boilerplate. ``signature`` is already wrapped by
        `spotsigs.signatures.boilerplate.with_boilerplate`.
    overwrite : bool
        A copy replaces an existing one.
    """

    collection: Any
    text: Any
    signature: SignatureScheme
    idf_filter: IdfFilter
    matcher: Matcher
    engine: Engine
    names: dict[str, str]
    tau: float
    clusters: ClusterMethod
    keep: Keep
    workers: int
    experiment: Any = None
    auto: bool = False
    sets: bool = False
    copies: Sameness = Sameness.text
    copy: str | None = None
    page: bool = False
    memory: int | None = None
    store: str | None = None
    add: bool = False
    query: str | None = None
    threads: int | None = None
    seed: int = 2008
    strict: bool = False
    boilerplate: Boilerplate = Boilerplate.keep
    overwrite: bool = False
    timing: bool = False
