"""Methods and collections that a user names on the command line of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.choices import known_choices
from experiments.config import ENDS, OF_COMPARE, OF_METHOD, Settings, composed, method_of, override, overrides
from spotsigs.contracts import VectorCollection
from spotsigs.errors import InputError, did_you_mean, require
from spotsigs.formats.detect_format import FORMATS
from spotsigs.method import Method

GROUPS = ("matcher", "signature")
DEFAULT = "spotsigs"
"""Choice of both groups that a method has unless it names another."""

Choices = dict[str, dict[str, Any]]
"""Groups and keys of methods, by label."""


def chosen_methods(named: Any, omitted: Iterable[str], paired: Mapping[str, Sequence[str]]) -> Choices:
    """Return the methods of a list of names of matchers or signatures and mappings of labels to groups and keys.

    A signature is compared with the exact join, a matcher on spot signatures or on those that `paired` has for it.
    Without a list, all choices of both groups are compared, also choices of plug-ins, except the `omitted` ones.

    Raises
    ------
    InputError
        If a name is no choice, an entry has no such form, or a label occurs twice.
    """
    known = {group: known_choices(group) for group in GROUPS}
    every = dict.fromkeys([DEFAULT, *known["signature"], *known["matcher"]])
    entries = [name for name in every if name not in {*omitted}] if named is None else named
    form = "methods must be a list such as '[spotsigs, lsh, {mine: {matcher: mine, signature: shingles3}}]'"
    require(isinstance(entries, list) and bool(entries), form)
    methods: list[tuple[str, dict[str, Any]]] = []
    for entry in entries:
        if isinstance(entry, Mapping):
            require(all(isinstance(choices, Mapping) for choices in entry.values()), f"{form}, got {dict(entry)}")
            methods += [(str(label), dict(choices)) for label, choices in entry.items()]
        else:
            methods += _of_name(str(entry), known, paired)
    labels = [label for label, _ in methods]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    require(
        not twice, f"methods has {', '.join(twice)} twice; give each a label of its own, as in {{mine: {{tau: 0.6}}}}"
    )
    return dict(methods)


def _of_name(
    name: str, known: Mapping[str, Sequence[str]], paired: Mapping[str, Sequence[str]]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the methods of a matcher or of a signature."""
    if name in known["matcher"]:
        signatures = paired.get(name, [DEFAULT])
        several = len(signatures) > 1
        return [
            (f"{name}, {signature}" if several else name, {"matcher": name, "signature": signature})
            for signature in signatures
        ]
    every = [*known["matcher"], *known["signature"]]
    near = did_you_mean(name, every)
    require(name in every, f"methods: {name} is no matcher or signature{near}; there are {', '.join(every)}")
    return [(name, {"matcher": DEFAULT, "signature": name})]


def composed_methods(choices: Choices, settings: Settings) -> tuple[dict[str, Method], dict[str, InputError]]:
    """Compose methods on top of the keys of the command line; return those that cannot be composed with their errors.

    All methods have the IDF band of the collection, unless they set one.
    """
    band = settings.method.idf_filter
    typed = [word.lstrip("+").partition("=")[::2] for word in overrides()]
    shared = {key: getattr(band, key) for key in ENDS}
    shared |= {key: value for key, value in typed if key in OF_METHOD and key not in ENDS}
    methods, wrong = {}, {}
    for label, keys in choices.items():
        try:
            methods[label] = method_of(shared | keys, settings, label=label)
        except InputError as error:
            wrong[label] = error
    return methods, wrong


def chosen_collections(named: Any, settings: Settings) -> list[Settings]:
    """Return the settings on each collection of a list, by default on the settings' own alone.

    An entry is a choice of ``data=``, or a mapping of a name to groups and keys, as in ``{mine: {data: jsonl,
    data.path: mine.jsonl}}``, or to overrides in one text.
    """
    if named is None:
        return [replace(settings, names=settings.names | {"data": _name(settings)})]
    form = "collections must be a list such as '[gold, {mine: {data: jsonl, data.path: mine.jsonl}}]'"
    require(isinstance(named, list) and bool(named), form)
    entries: list[tuple[str, Any]] = []
    for entry in named:
        entries += entry.items() if isinstance(entry, Mapping) else [("", entry)]
    return [of_collection(settings, words, name) for name, words in entries]


def of_collection(settings: Settings, words: Any, name: str = "") -> Settings:
    """Return the settings with another collection, given by groups and keys, overrides, or a choice of ``data=``."""
    if isinstance(words, Mapping):
        given = [override(key, value) for key, value in words.items()]
    else:
        given = str(words).split() if "=" in str(words) else [f"data={words}"]
    kept = [word for word in overrides() if _key(word) not in ("experiment", "data", *OF_COMPARE)]
    other = composed(*given, *kept, f"workers={settings.workers}")
    names = other.names | {"experiment": settings.names["experiment"], "data": name or _name(other)}
    return replace(other, names=names, experiment=settings.experiment)


def _name(settings: Settings) -> str:
    """Return the name of a collection in tables: its file or folder if it is a format."""
    collection = settings.collection
    require(
        not isinstance(collection, VectorCollection),
        f"data={settings.names['data']} has vectors without pages, and no truth; choose a collection of pages",
    )
    name = settings.names["data"]
    return Path(collection.path).name if name in FORMATS else name


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0].partition(".")[0]
