"""A method: all choices that decide the result of a collection, from its text to the documents that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from shlex import quote
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.clustering.decisions import BY_SCORE, Decisions, Keep, decide, priority
from spotsigs.clustering.in_memory import Extracted, Matched, SharedJoin
from spotsigs.clustering.leaders import LeaderOptions
from spotsigs.contracts import Collection, CollectionScheme, Matcher, SignatureScheme, VectorCollection
from spotsigs.errors import as_choice, flag, require, shown
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.options import (
    SEED,
    TAU,
    TAU_CONTAINED,
    Door,
    function_options,
    method_options,
    options_of,
    plain,
)
from spotsigs.records import Corpus, Document, DocumentColumns, Pairs, Signatures
from spotsigs.signatures.boilerplate import Boilerplate, boilerplate_of, with_boilerplate
from spotsigs.signatures.contained import RemovalRule
from spotsigs.signatures.extract import extract, texts
from spotsigs.signatures.idf import Idf, IdfFilter
from spotsigs.signatures.languages import AUTO, marks_shingles
from spotsigs.signatures.main_content import MainContent
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.signatures.text_shingles import TextShingles
from spotsigs.storage.exact_duplicates import ExactDuplicates, Sameness
from spotsigs.storage.identity import identity, values_of
from spotsigs.storage.tasks import in_caller
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Engine

SCHEMA = 2
"""Version of the keys of a method."""

Spelling = Callable[[str, Any], tuple[str, dict[str, Any]]]
"""How a door writes a part of a method: a function of its group, such as ``matcher``, and of the part.

It returns the name of the part, and its other words by key, such as ``matcher.k``.
"""


class ExactMeasure(Enum):
    """Similarity measures of the exact matchers that `Method.of` makes."""

    jaccard = "jaccard"
    containment = "containment"


CHOICES: Mapping[str, type[Enum]] = {
    "boilerplate": Boilerplate,
    "clusters": ClusterMethod,
    "duplicates": Sameness,
    "idf": Idf,
    "keep": Keep,
    "measure": ExactMeasure,
}
"""The values of the options that name one of several, see `spotsigs.options`."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """The stages from documents to decisions, with all their parameters.

    Attributes
    ----------
    text : callable
        Function from a document to its text.
    signature : SignatureScheme
        Function from tokens to signatures, with its treatment of boilerplate, see
        `spotsigs.signatures.boilerplate.with_boilerplate`.
    idf_filter : IdfFilter
        The signatures and documents that are compared.
    sets : bool
        Count every signature once.
    duplicates : Sameness
        Which documents are exact duplicates: pairs of similarity 1, of which one is compared for all.
    matcher : Matcher
        Function from signatures to pairs, with its threshold.
    clusters : ClusterMethod
        How pairs become clusters.
    keep : Keep
        Order in which documents are kept.
    min_contained : float
        Least fraction of the text of a removed document that the kept one contains, see
        `spotsigs.signatures.contained`. It does not count with ``Keep.none``, nor for a reference whose documents
        others contain. Above 0, two pages of one section must also reach `spotsigs.signatures.sections.SECTION_TAU`,
        if their templates are removed. At 0, the threshold alone decides.
    chooses_tau : bool
        Nobody chose the threshold, and it depends on the pages. The command and the functions then choose it, see
        `spotsigs.options.default_tau`.

    Examples
    --------
    >>> print(Method().at(0.6))
    text=visible signature=spotsigs matcher=spotsigs_tight tau=0.6 idf_min=0.2 idf_max=1.0
    """

    text: Callable[[Document], str] = field(default_factory=VisibleText)
    signature: SignatureScheme = field(default_factory=SpotSignatures)
    idf_filter: IdfFilter = field(default_factory=IdfFilter)
    sets: bool = False
    duplicates: Sameness = Sameness.text
    matcher: Matcher = field(default_factory=SpotSigsTight)
    clusters: ClusterMethod = ClusterMethod.leaders
    keep: Keep = Keep.first
    min_contained: float = 0.0
    chooses_tau: bool = field(default=False, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        *,
        text: Callable[[Document], str] | None = None,
        signature: SignatureScheme | str | None = None,
        language: str | None = None,
        boilerplate: Boilerplate | str | None = None,
        idf_min: float | None = None,
        idf_max: float | None = None,
        idf: Idf | str | None = None,
        min_spots: int | None = None,
        sets: bool = False,
        duplicates: Sameness | str | None = None,
        matcher: Matcher | None = None,
        measure: ExactMeasure | str | None = None,
        tau: float | None = None,
        threads: int | None = None,
        clusters: ClusterMethod | str | None = None,
        keep: Keep | str | None = None,
        min_contained: float | None = None,
    ) -> Self:
        """Make a method of options, for `spotsigs.dedup`, `spotsigs.near_duplicates`, a run or a store.

        What is omitted or None has the default of the functions. No other function puts a method together.

        Parameters
        ----------
        text : callable, optional
            Function from a document to its text. The default is the visible text.
        signature : SignatureScheme or str, optional
            Signature scheme, or ``spotsigs``: spot signatures with the paper's best parameters. With `measure`
            containment, shingles of five tokens take their place, because a short text has few spots, or none.
        language : str, optional
            Without a scheme, the language whose stopwords begin the signatures, see
            `spotsigs.signatures.languages.languages`. The default ``auto`` detects the language of each page; a page
            with few or no spot signatures is compared by shingles.
        boilerplate : {"auto", "remove", "keep", "main_content"}, optional
            Treatment of the text around the main content, see `spotsigs.signatures.boilerplate.Boilerplate`. The
            default is ``auto``, and ``keep`` for a scheme of your own.
        idf_min, idf_max : float, optional
            Band of normalised IDF that is kept. Document frequencies are counted over distinct pages; fewer than 32
            pages have no band, see `spotsigs.signatures.idf.FEWEST`. The default is the whole range, 0 to 1.
        idf : {"paper", "prototype"}, optional
            Formula of the IDF, see `spotsigs.signatures.idf.Idf`. The default is the paper's.
        min_spots : int, optional
            A page with fewer remaining signatures has no near-duplicates but its exact duplicates. The default is 1.
        sets : bool
            Count every signature once.
        duplicates : {"text", "content", "off"}, optional
            Exact duplicates, pairs of similarity 1 whatever their signatures: pages of the same content or visible text
            (the default), of the same content, or none.
        matcher : Matcher, optional
            Function from signatures to pairs. The default is the exact matcher of `measure`, with `threads`.
        measure : {"jaccard", "containment"}, optional
            Multiset Jaccard similarity (the default), or the intersection divided by the smaller page, which finds a
            teaser in its article.
        tau : float, optional
            Similarity threshold in (0, 1]. If it is omitted, it is 0.8 for containment; for Jaccard similarity, the
            functions and the command choose it by the pages.
        threads : int, optional
            Threads of the join. The default is one for each core.
        clusters : {"leaders", "components"}, optional
            How pairs become clusters, see `spotsigs.cluster`. The default is ``leaders``.
        keep : {"first", "longest", "newest", "none"}, optional
            Which document of a cluster stays, see `spotsigs.dedup`. The default is ``first``.
        min_contained : float, optional
            Remove a page only if the kept page contains at least this fraction of its text, see
            `spotsigs.signatures.contained`; at 0, `tau` alone decides. The default is 0.3, and 0 for a `signature` that
            does not locate its signatures.

        Raises
        ------
        InputError
            If an option is out of range; the command spells the option as its own.

        Examples
        --------
        >>> Method.of(boilerplate="keep", measure="containment", tau=0.6).matcher
        Containment(tau=0.6, threads=None)
        """
        scheme = SPOTSIGS if signature is None else signature
        named = isinstance(scheme, str) and scheme == SPOTSIGS
        known = named or isinstance(scheme, SignatureScheme)
        require(known, f"{flag('signature')} must be a SignatureScheme or {SPOTSIGS!r}, got {shown(scheme)}")
        containment = _chosen("measure", measure) is ExactMeasure.containment
        if not isinstance(scheme, SignatureScheme):
            scheme = TextShingles() if containment else _spots_of(_value("language", language))
        if min_contained is None and not (named or scheme.locates):
            min_contained = 0.0
        if boilerplate is None and not named:
            boilerplate = Boilerplate.keep
        if matcher is None:
            exact, usual = (Containment, TAU_CONTAINED) if containment else (SpotSigsTight, TAU)
            matcher = exact(tau=usual if tau is None else tau, threads=threads)
        elif tau is not None:
            matcher = matcher.at(tau)
        return cls(
            text=VisibleText() if text is None else text,
            signature=with_boilerplate(scheme, _chosen("boilerplate", boilerplate)),
            idf_filter=IdfFilter(
                idf_min=_value("idf_min", idf_min),
                idf_max=_value("idf_max", idf_max),
                idf=_chosen("idf", idf),
                min_spots=_value("min_spots", min_spots),
            ),
            sets=sets,
            duplicates=_chosen("duplicates", duplicates),
            matcher=matcher,
            clusters=_chosen("clusters", clusters),
            keep=_chosen("keep", keep, BY_SCORE_NOTE),
            min_contained=OF_METHOD["min_contained"].checked(_value("min_contained", min_contained)),
            chooses_tau=tau is None and not containment,
        )

    @property
    def tau(self) -> float | None:
        """Similarity threshold; None if the matcher has none."""
        return self.matcher.threshold

    @property
    def threshold(self) -> float:
        """Similarity threshold of a method that has one."""
        require(self.tau is not None, f"{self.matcher.label} has no threshold")
        return float(self.tau or 0)

    @property
    def boilerplate(self) -> Boilerplate:
        """Treatment of boilerplate."""
        return boilerplate_of(type(self.signature).__name__)

    @property
    def language(self) -> str | None:
        """Language of the signatures; None of a scheme without one."""
        return next(values_of(identity(self.signature), "language"), None)

    @property
    def removes_templates(self) -> bool:
        """Whether the templates of pages with links are removed."""
        return isinstance(self.signature, CollectionScheme)

    @property
    def reads_phrases(self) -> bool:
        """Whether decisions depend on the phrases of the texts; decisions by ``Keep.none`` never do."""
        return self.min_contained > 0

    @property
    def band(self) -> tuple[float, float]:
        """Band of normalised IDF of the signatures that the matcher compares; some matchers have one of their own."""
        parts: list[Any] = [part for part in (self.idf_filter, self.matcher) if hasattr(part, "idf_max")]
        return max(part.idf_min for part in parts), min(part.idf_max for part in parts)

    def at(self, tau: float | None) -> Self:
        """Return the method with another threshold; unchanged if it has none, or none is given."""
        return replace(self, matcher=self.matcher.at(tau), chooses_tau=False)

    @property
    def _scheme(self) -> Any:
        """The scheme without its treatment of boilerplate."""
        return self.signature if self.boilerplate is Boilerplate.keep else vars(self.signature)["signature"]

    def __str__(self) -> str:
        """Return the choices as they are typed into a shell, as keys of ``run.py``: the same in every process."""
        return self.spelled(spell_part)

    def spelled(self, spelling: Spelling) -> str:
        """Return the choices as they are typed into a shell, as keys of ``run.py``, in the spelling of a door."""
        return " ".join(f"{name}={quote(plain(value))}" for name, value in self.words(spelling).items())

    def words(self, spelling: Spelling) -> dict[str, Any]:
        """Return the names, the parameters and the threshold, and the keys that are not their defaults."""
        words: dict[str, Any] = {}
        parts: dict[str, Any] = {"text": self.text, "signature": self._scheme, "matcher": self.matcher}
        for group, part in parts.items():
            words[group], parameters = spelling(group, part)
            words |= parameters
        words |= {} if self.tau is None else {"tau": self.tau}
        words |= {"idf_min": self.idf_filter.idf_min, "idf_max": self.idf_filter.idf_max}  # the defaults are the data's
        chosen = vars(self.idf_filter) | vars(self) | {"boilerplate": self.boilerplate}
        chosen["seed"] = getattr(self.matcher, "seed", SEED)
        keys = options_of(Door.run)
        for name in PRINTED:
            if _value_of(chosen[name]) != _value_of(keys[name].defaults[Door.run]):
                words[name] = chosen[name]
        return words

    def extraction_key(self) -> str:
        """Return, as JSON, what the signatures of a collection depend on."""
        parts = {"schema": SCHEMA} | {name: identity(getattr(self, name)) for name in _EXTRACTION}
        return json.dumps(parts | ({"phrases": True} if self.reads_phrases else {}))

    def join_key(self) -> str:
        """Return, as JSON, what the pairs of a collection depend on besides the threshold."""
        parts = {name: identity(getattr(self, name)) for name in ("idf_filter", "sets")}
        parts["matcher"] = identity(self.matcher.at(1.0).with_threads(1))
        return json.dumps(json.loads(self.extraction_key()) | parts)

    def extract(
        self, collection: Collection | VectorCollection, engine: Engine, *, strict: bool = False, grams: int = 0
    ) -> Extracted:
        """Extract signatures, see `spotsigs.signatures.extract.extract`, and find the exact duplicates."""
        began = perf_counter()
        if isinstance(collection, VectorCollection):
            vectors = collection.vectors()
            ids: Any = vectors.ids
            signatures = Signatures(DocumentColumns(vectors.doc_ids), vectors.indptr, ids, vectors.counts)
            return Extracted(signatures, ExactDuplicates.none(len(vectors)), perf_counter() - began, vectors)
        signatures = extract(
            collection,
            self.text,
            self.signature,
            engine,
            strict=strict,
            sameness=self.duplicates,
            grams=grams,
            phrases=self.reads_phrases,
        )
        with in_caller("exact duplicates", len(signatures)):
            exact_duplicates = ExactDuplicates.among(signatures, self.duplicates)
        return Extracted(signatures, exact_duplicates, perf_counter() - began)

    def prepare_join(self, collection: Collection | VectorCollection, extracted: Extracted) -> SharedJoin:
        """Filter the signatures of a collection for matching; add the texts for a matcher that reads them.

        Vectors are matched without filters.
        """
        known = extracted
        with in_caller("filtering", len(known.signatures)):
            vectors = known.vectors
            if vectors is None:
                vectors = self.idf_filter(known.signatures, known.exact_duplicates)
            vectors = vectors.as_sets() if self.sets else vectors
        if isinstance(collection, VectorCollection):
            return SharedJoin(known, Corpus(vectors))

        def distinct_texts() -> Iterator[str]:
            """Yield the text of each document; the text of an exact duplicate is empty."""
            for page, distinct in zip(
                texts(collection, self.text), known.exact_duplicates.distinct.tolist(), strict=True
            ):
                yield page if distinct else ""

        return SharedJoin(known, Corpus(vectors, distinct_texts), marks_shingles(self.signature))

    def match_for_decisions(self, join: SharedJoin) -> Matched:
        """Return what `decide` needs: without a list of all pairs, unless the matcher or the clusters need it.

        The number of all pairs grows with the squares of the sizes of clusters.
        """
        if self.clusters is ClusterMethod.leaders and isinstance(self.matcher, SpotSigsTight):
            return join.match_without_list(self.matcher)
        return join.match(self.matcher)

    def match(
        self, collection: Collection | VectorCollection, engine: Engine, *, strict: bool = False, listed: bool = True
    ) -> Matched:
        """Find all pairs of a collection that fits into memory, or, unless `listed`, only what `decide` needs.

        With a reference, each pair has one of its documents and another one, see `spotsigs.contracts.Referenced`.

        Raises
        ------
        InputError
            If the signature scheme or the matcher rejects the input, or, if `strict`, for the first unreadable record.
        """
        join = self.prepare_join(collection, self.extract(collection, engine, strict=strict))
        return join.match(self.matcher, crossed=True) if listed else self.match_for_decisions(join)

    def decide(
        self,
        matched: Matched,
        *,
        dates: Iterable[str | None] | None = None,
        earlier: NDArray[np.bool_] | None = None,
    ) -> tuple[Decisions, Pairs]:
        """Group the documents, and decide which are kept; return the pairs, too, if not listed those with kept ones.

        Parameters
        ----------
        matched : Matched
            Pairs of the method.
        dates : iterable of (str or None), optional
            Dates or scores of the documents, for an order by them. The collection has the default.
        earlier : ndarray of bool, shape (m,), optional
            For each of the first m documents, whether an earlier run has kept it. Its decisions are final. By
            default, the documents of a reference are kept.
        """
        n, exact_duplicates = len(matched.doc_ids), matched.exact_duplicates
        if earlier is None and matched.new_from:
            earlier = np.ones(matched.new_from, np.bool_)
        lengths = matched.main_lengths() if self.keep is Keep.longest else None
        if self.keep in (Keep.newest, *BY_SCORE) and dates is None:
            dates = matched.signatures.dates
        order = priority(self.keep, n, lengths, dates)
        removed = None
        if earlier is not None:  # those that an earlier run has kept come first
            m = len(earlier)
            order = np.arange(n) if order is None else order
            order[:m] = order.min(initial=0) - 1
            removed = np.concatenate([~earlier, np.zeros(n - m, np.bool_)])
        rule = self._rule(matched)
        options = LeaderOptions(order, removed, rule, matched.new_from, self.keep is Keep.none)
        groups, pairs, counts = matched.grouped(self.clusters, options)
        compared = None if self.matcher.reads_texts else matched.compared()
        decisions = decide(
            pairs,
            groups,
            self.keep,
            counts=counts,
            earlier=earlier,
            exact_duplicates=exact_duplicates,
            compared=compared,
        )
        decisions = replace(decisions, in_sections=rule.section_tau > (self.tau or 0))
        return decisions if rule.least == 0 else decisions.measured(rule), pairs

    def _rule(self, matched: Matched) -> RemovalRule:
        """Return which documents may be removed for which."""
        of_containers = isinstance(self.matcher, Containment) and matched.new_from > 0
        texts = self.keep is not Keep.none and not of_containers
        return matched.rule(self.tau, self.min_contained, texts=texts)


def _spots_of(language: str) -> SpotSignatures:
    """Return the default scheme of a language: short texts and those without stopwords are compared by shingles."""
    return SpotSignatures(language=language, shingles=language != AUTO)


SPOTSIGS = "spotsigs"
"""Name of the default signature scheme."""

_EXTRACTION = ("text", "signature", "duplicates")
PARTS: Mapping[str, type[Any]] = {
    "visible": VisibleText,
    "spotsigs": SpotSignatures,
    "text_shingles": TextShingles,
    "spotsigs_tight": SpotSigsTight,
    "containment": Containment,
}
"""The package's own texts, signatures and matchers, by the names that are printed and typed."""

STORED = {cls.__name__: cls for cls in (*PARTS.values(), Method, IdfFilter, TemplateRemoval, MainContent)}
"""The classes of the methods that a store can have, by name."""

BY_SCORE_NOTE = f" ('largest' and 'smallest' are set by {flag('keep_by')})"
"""What an error about `Keep` adds."""

ROOT_PARAMETERS = ("tau", "threads", "seed")
"""Parameters of signatures and matchers that are keys of ``run.py`` of their own."""

PRINTED = (
    "seed",
    *(name for name in method_options(Door.run) if name not in ("tau", "threads", "idf_min", "idf_max")),
)
"""Keys of ``run.py`` that a method prints if they are not the defaults."""

OF_METHOD = function_options("Method.of")
"""The options of `Method.of`."""


def _value_of(choice: Any) -> Any:
    """Return the value of a member of an enumeration, and any other choice as it is."""
    return getattr(choice, "value", choice)


def _value(name: str, value: Any) -> Any:
    return OF_METHOD[name].defaults[Door.function] if value is None else value


def _chosen(name: str, value: Any, note: str = "") -> Any:
    """Return the member of the enumeration of an option; the option's default for None."""
    return as_choice(flag(name), _value(name, value), CHOICES[name], note)


def spell_part(group: str, part: Any) -> tuple[str, dict[str, Any]]:
    """Return the package's own name of a text, signature or matcher, and its parameters that are not the defaults.

    A class of another package has its own name.
    """
    if not is_dataclass(part):
        return getattr(part, "__qualname__", type(part).__qualname__), {}
    own = next((name for name, cls in PARTS.items() if type(part) is cls), type(part).__name__)
    return own, {f"{group}.{name}": value for name, value in changed_parameters(part, _usual(part)).items()}


def _usual(part: Any) -> Any:
    """Return the part with the defaults of its class; None if it has parameters without a default."""
    needs = any(item.default is MISSING and item.default_factory is MISSING for item in fields(part) if item.init)
    return None if needs else type(part)()


def changed_parameters(part: Any, usual: Any) -> dict[str, Any]:
    """Return the parameters of a part that differ from another one's, except the keys of ``run.py``."""
    values = {item.name: getattr(part, item.name) for item in fields(part) if item.name not in ROOT_PARAMETERS}
    return {name: value for name, value in values.items() if usual is None or value != getattr(usual, name)}
