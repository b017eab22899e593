"""The treatment of boilerplate is independent of the signature scheme."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from stores import pages_of
from strategies import rows_of_signatures

from baselines.shingles import Shingles
from spotsigs.contracts import SignatureScheme
from spotsigs.errors import InputError
from spotsigs.records import Tokens
from spotsigs.signatures.boilerplate import Boilerplate, with_boilerplate
from spotsigs.signatures.extract import extract
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

MENU = "".join(f"<li><a href=/{k}>Section number {k}</a></li>" for k in range(12))
LEGAL = "<p>The site is a service of the publisher and the terms of use are on the page of the legal office.</p>"
WORDS = "mayor bridge river guest spring church valley school clinic market judge sailor harbour garden".split()
STORIES = [
    "<p>"
    + " ".join(f"The {WORDS[(k * s + 3 * k) % 14]} was a {WORDS[(k + s * s) % 14]}{s}" for k in range(12))
    + ".</p>"
    for s in range(1, 8)
]
SCHEMES = [SpotSignatures(), SpotSignatures(d=1, c=2), SpotSignatures(language="auto"), Shingles(k=3), Shingles(k=5)]


def kept(pages: list[str], scheme: SignatureScheme, boilerplate: Boilerplate, media_type: str = "text/html"):
    collection = pages_of(*pages, media_type=media_type)
    signatures = extract(collection, VisibleText(), with_boilerplate(scheme, boilerplate), Serial())
    return list(map(set, rows_of_signatures(signatures)))


def of_text(text: str, scheme: SignatureScheme) -> set[int]:
    return set(scheme(tokenize(text.replace("<p>", "").replace("</p>", ""))).tolist())


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_every_scheme_loses_the_template_and_keeps_the_story(scheme):
    pages = [f"<ul>{MENU}</ul>{story}<footer>{LEGAL}</footer>" for story in STORIES]
    whole, removed = (kept(pages, scheme, Boilerplate(way)) for way in ("keep", "remove"))
    for page, left, story in zip(whole, removed, STORIES, strict=True):
        assert page - left
        assert len(left - page) <= 1  # what makes up for a small remainder
        assert len(left & of_text(story, scheme)) >= 0.7 * len(of_text(story, scheme))
        assert len(left & of_text(LEGAL, scheme)) <= 0.2 * len(of_text(LEGAL, scheme))


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
@pytest.mark.parametrize("way", list(Boilerplate))
def test_plain_text_keeps_everything(scheme, way):
    pages = [f"{story} {LEGAL}" for story in STORIES]
    assert kept(pages, scheme, way, "text/plain") == kept(pages, scheme, Boilerplate.keep, "text/plain")


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_main_content_is_detected_on_each_page_alone(scheme):
    page = f"<ul>{MENU}</ul>{STORIES[0]}<ul>{MENU}</ul>{LEGAL}"
    (alone,) = kept([page], scheme, Boilerplate.main_content)
    assert kept([page, *STORIES], scheme, Boilerplate.main_content)[0] == alone
    assert len(alone & of_text(STORIES[0], scheme)) >= 0.9 * len(of_text(STORIES[0], scheme))
    assert alone < kept([page], scheme, Boilerplate.keep)[0]


@dataclass(frozen=True)
class Unlocated(SignatureScheme):
    label = "unlocated"

    def __call__(self, tokens: Tokens):
        return Shingles(k=1)(tokens)

    def readable(self, text: str) -> list[str]:
        return Shingles(k=1).readable(text)


def test_a_scheme_that_does_not_locate_its_signatures_is_refused():
    with pytest.raises(
        InputError, match=r"Unlocated does not locate its signatures; boilerplate=keep and min_contained=0 are possible"
    ):
        kept(["<p>one"], Unlocated(), Boilerplate.remove)
