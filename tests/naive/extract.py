"""Reference implementations of the extraction kernels."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path

import regex
import xxhash
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

ROOT = Path(__file__).parents[2]
INLINE = """a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd mark nobr q s samp small span
    strike strong sub sup time tt u var wbr"""
HIDDEN = {"script", "style", "noscript", "iframe", "noembed", "noframes", "template"}


def visible_text(html: str | bytes) -> str:
    """Traverse the whole tree; put spaces around elements that are not inline."""
    body = LexborHTMLParser(html, scripting=True).body
    parts: list[str] = []

    def walk(node):
        child = node.first_child
        while child is not None:
            if child.tag == "-text":
                parts.append(child.text_content or "")
            elif child.is_element_node and child.tag not in HIDDEN:
                space = "" if child.tag in INLINE.split() else " "
                parts.append(space)
                walk(child)
                parts.append(space)
            elif child.is_element_node:
                parts.append(" ")
            child = child.next

    if body is not None:
        walk(body)
    return "".join(parts).replace("\xad", "")


def xhtml_text(page: str) -> str:
    """Parse well-formed XHTML as XML; return the text of the body's elements that are shown."""
    parts: list[str] = []

    def walk(element):
        if isinstance(element.tag, str) and element.tag not in HIDDEN:
            parts.append(element.text or "")
            for child in element:
                walk(child)
        parts.append(element.tail or "")

    walk(etree.fromstring(page.encode()).find("body"))
    return "".join(parts)


RUN = regex.compile(r"[\p{L}\p{M}\p{Nd}]+")
UNSPACED = regex.compile(
    r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}"
    r"\p{Script=Myanmar}\p{Script=Javanese}\u30FC\uFF70\u3099\u309A\uFF9E\uFF9F]+"
)


def normalized(text: str) -> str:
    """Drop what is not shown; NFKC; lower case."""
    shown = "".join(c for c in text if not regex.match(r"\p{Default_Ignorable_Code_Point}", c))
    return unicodedata.normalize("NFKC", shown).lower()


def tokens(text: str) -> list[str]:
    """Find runs of letters, marks and digits; cut the parts in unspaced scripts into bigrams."""
    words = []
    for run in RUN.findall(normalized(text)):
        at = 0
        for part in UNSPACED.finditer(run):
            words.append(run[at : part.start()])
            characters = part.group()
            words += [characters[k : k + 2] for k in range(len(characters) - 1)] or [characters]
            at = part.end()
        words.append(run[at:])
    return [word for word in words if word]


def spots(
    words: list[str],
    antecedents: dict[str, list[tuple[int, int]]],
    stopwords: set[str],
    include_antecedent: bool = True,
) -> list[str]:
    """Follow section 3.1 of the paper literally."""
    stop = stopwords | set(antecedents)
    signatures = []
    for i, word in enumerate(words):
        for d, c in antecedents.get(word, []):
            chain, k = [], i + d
            for _ in range(c):
                while k < len(words) and words[k] in stop:
                    k += 1
                if k < len(words):
                    chain.append(words[k])
                k += d
            if chain:
                signatures.append(":".join([word] * include_antecedent + chain))
    return signatures


def shingles(words: list[str], k: int) -> list[str]:
    """Slide a window of k words; a shorter text is one shingle."""
    if not words:
        return []
    return [":".join(words[i : i + k]) for i in range(max(len(words) - k, 0) + 1)]


def hashed(signatures: list[str]) -> list[int]:
    """Hash each signature's UTF-8."""
    return [xxhash.xxh64_intdigest(signature.encode()) for signature in signatures]


def counted(signatures: list[str]) -> dict[int, int]:
    """Count the hashes of signatures."""
    return dict(sorted(Counter(hashed(signatures)).items()))


def unique_ids(ids: list[str]) -> tuple[str, ...]:
    """Append #2, #3, … to repeated ids, without creating the id of another document."""
    taken, occurrences, unique = set(ids), dict.fromkeys(ids, 0), []
    for name in ids:
        number = occurrences[name] + 1
        candidate = name if number == 1 else f"{name}#{number}"
        while number > 1 and candidate in taken:
            number += 1
            candidate = f"{name}#{number}"
        occurrences[name] = number
        taken.add(candidate)
        unique.append(candidate)
    return tuple(unique)
