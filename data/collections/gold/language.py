"""Inflection of words, and a weighted grammar for sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from data.collections.gold.random_streams import Bag, Dice

HERE = Path(__file__).parent

_VOWEL_SOUND = re.compile(
    r"\b([Aa]) (?=(?!uni(?![mn])|us[eu]|ura|ut[ei]|eur|one\b)[aeiouàáéíóú]|hour|honest|honor|heir|8|11\b|18\b)",
    re.IGNORECASE,
)
_RAISED = re.compile(r"\^+( ?“?)\^?(\w)")
_FIRST = re.compile(r"\w")
_SPACE_BEFORE = re.compile(r" +(?=[,.;:!?])")
_DOUBLE_COMMA = re.compile(r",(\|?),*(?=[,.;:!?])")
_SYMBOL = re.compile(r"<([A-Za-z_.]+)>")


@cache
def toml(name: str) -> dict[str, Any]:
    """Read one of the generator's TOML files."""
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def plain(word: str) -> str:
    """Return the base form of a listed word."""
    return word.partition("/")[0].rstrip("*").replace("_", " ")


def plural(noun: str) -> str:
    """Return the plural of a listed noun."""
    base, _, irregular = noun.partition("/")
    return (irregular or _add_s(base)).replace("_", " ")


def third_person(verb: str) -> str:
    """Return the present tense after *he* or *she* of a listed verb."""
    return _on_first_word(verb, _add_s)


def gerund(verb: str) -> str:
    """Return the ``-ing`` form of a listed verb."""

    def add_ing(base: str) -> str:
        if base.endswith("ie"):
            return base[:-2] + "ying"
        if base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
            return base[:-1] + "ing"
        return base + "ing"

    return _on_first_word(verb, add_ing, doubled=True)


def past(verb: str) -> str:
    """Return the simple past of a listed verb."""
    irregular = verb.split("/")[1:2]
    return irregular[0].replace("_", " ") if irregular else _on_first_word(verb, _add_ed, doubled=True)


def participle(verb: str) -> str:
    """Return the past participle of a listed verb."""
    irregular = verb.split("/")[-1:] if "/" in verb else []
    return irregular[0].replace("_", " ") if irregular else past(verb)


def _on_first_word(verb: str, ending: Callable[[str], str], doubled: bool = False) -> str:
    base = verb.partition("/")[0]
    head, _, rest = base.partition("_")
    if doubled and (head.endswith("*") or re.fullmatch(r"[^aeiou]*(qu)?[aeiou][^aeiouwxy]", head.rpartition("-")[2])):
        head = head.rstrip("*") + head.rstrip("*")[-1]
    return f"{ending(head.rstrip('*'))} {rest}".rstrip().replace("_", " ")


def _add_s(base: str) -> str:
    if base.endswith(("s", "x", "z", "ch", "sh")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def _add_ed(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


FORMS: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    "noun": {"": plain, ".s": plural},
    "verb": {"": plain, ".s": third_person, ".ed": past, ".en": participle, ".ing": gerund},
    "other": {"": plain},
}
CLASSES = {
    "person": "noun",
    "body": "noun",
    "thing": "noun",
    "occasion": "noun",
    "place": "noun",
    "mass": "other",
    "act": "verb",
    "aff": "verb",
    "happen": "verb",
    "try": "verb",
    "feel": "other",
    "adj": "other",
    "adv": "other",
    "trait": "other",
    "ease": "other",
}


@cache
def inflected(word: str, kind: str, form: str) -> str:
    """Return one form of a listed word: ``inflected("study", "verb", ".ed")`` is *studied*."""
    return FORMS[kind][form](word)


Rules = Mapping[str, Bag[list[str]]]


def compile_rules(texts: Mapping[str, str]) -> Rules:
    """Compile rules to weighted alternatives; an alternative has alternating literals and symbols."""
    rules = {}
    for symbol, text in texts.items():
        alternatives, weights = [], []
        for line in filter(None, text.split("\n")):
            weight, _, rest = line.partition(" ")
            weighted = weight.isdigit() and bool(rest)
            weights.append(int(weight) if weighted else 1)
            alternatives.append(_SYMBOL.split(rest if weighted else line))
        rules[symbol] = Bag(alternatives, weights)
    return rules


@cache
def grammar() -> Rules:
    """Return the compiled grammar.toml."""
    return compile_rules(toml("grammar.toml"))


Terminal = Callable[[], str]


def expand(symbol: str, rules: Rules, terminals: Mapping[str, Terminal], dice: Dice) -> str:
    """Expand a symbol to text before `tidy`; functions of terminals have precedence over rules."""
    terminal = terminals.get(symbol)
    return terminal() if terminal is not None else fill(rules[symbol].draw(dice), rules, terminals, dice)


def fill(parts: Sequence[str], rules: Rules, terminals: Mapping[str, Terminal], dice: Dice) -> str:
    """Expand the symbols of an alternative, which are every second part."""
    return "".join([expand(part, rules, terminals, dice) if i & 1 else part for i, part in enumerate(parts)])


def tidy(text: str) -> str:
    """Correct *a* and *an*, blanks and commas before stops, and capitals in expanded text."""
    text = _DOUBLE_COMMA.sub(r"\1", _SPACE_BEFORE.sub("", text))
    text = _VOWEL_SOUND.sub(r"\1n ", text)
    text = _RAISED.sub(lambda match: match[1] + match[2].upper(), text)
    return _FIRST.sub(lambda match: match[0].upper(), text, count=1)
