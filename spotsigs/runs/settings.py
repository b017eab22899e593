"""What a run is made of, checked and built: the one set of settings behind every way to start it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.clustering.decisions import Keep
from spotsigs.engines import Engine
from spotsigs.exact_duplicates import Sameness
from spotsigs.records import Matcher, SignatureScheme
from spotsigs.signatures.boilerplate import Boilerplate
from spotsigs.signatures.idf import IdfFilter

AUTO = "auto"
"""In place of tau: a threshold suggested by the collection itself."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A checked configuration: every node built, nothing started yet.

    Attributes
    ----------
    collection, text, signature, idf_filter, matcher, engine : object
        The stages' parts; see `spotsigs.records`.
    experiment : object or None
        Called with these settings instead of a single run.
    auto : bool
        The threshold is to be suggested; ``tau`` and the matcher's own hold the lowest one looked at.
    tau, sets, copies, clusters, keep, copy, page, store, add, query, workers, threads, seed, strict, timing
        Root keys.
    memory : int or None
        Bytes for all processes of a run on disk; None for a run in memory.
    names : dict of str to str
        What the user chose in each group, for example ``{"matcher": "spotsigs"}``.
    boilerplate : Boilerplate
        Treatment of boilerplate. ``signature`` is already wrapped by
        `spotsigs.signatures.boilerplate.with_boilerplate`.
    overwrite : bool
        Whether a copy replaces one that is there.
    """

    collection: Any
    text: Any
    signature: SignatureScheme
    idf_filter: IdfFilter
    matcher: Matcher
    engine: Engine
    experiment: Any
    auto: bool
    tau: float
    sets: bool
    copies: Sameness
    clusters: ClusterMethod
    keep: Keep
    copy: str | None
    page: bool
    memory: int | None
    store: str | None
    add: bool
    query: str | None
    workers: int
    threads: int | None
    seed: int
    strict: bool
    names: dict[str, str]
    boilerplate: Boilerplate = Boilerplate.keep
    overwrite: bool = False
    timing: bool = False
