"""A page that was cut off and the complete one: with ``keep="longest"``, the complete page stays at any cut."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from strategies import examples

import spotsigs

MENU = "<ul>" + "".join(f"<li><a href='/{k}'>section {k} of the site</a></li>" for k in range(12)) + "</ul>"
FOOTER = "<div>" + "".join(f"<a href='/f{k}'>notice {k}</a> " for k in range(8)) + "</div></body></html>"


def prose(rng, sentences):
    """Return paragraphs of five sentences, of words that hardly any other text has."""
    told = [
        f"The w{rng.getrandbits(30):x} of the w{rng.getrandbits(30):x} is a w{rng.getrandbits(30):x} that was"
        f" w{rng.getrandbits(30):x}."
        for _ in range(sentences)
    ]
    return "".join(f"<p>{' '.join(told[k : k + 5])}</p>" for k in range(0, sentences, 5))


def page(story):
    return f"<html><body>{MENU}<h1>News</h1>{story}{FOOTER}"


@st.composite
def crawls(draw):
    """Draw pages by their URLs: one that is cut off, the complete one, and others of their sites; and where it is cut.

    The last value is the fraction of the story before the cut.
    """
    rng = random.Random(draw(st.integers(0, 10**6)))
    story = prose(rng, draw(st.sampled_from([20, 40, 80])))
    complete = page(story)
    fraction = draw(st.floats(0.1, 0.97))
    cut = complete[: complete.index(story) + int(fraction * len(story))]
    sites = "http://cut.example", draw(st.sampled_from(["http://cut.example", "http://whole.example"]))
    rows = {f"{sites[0]}/a/cut": cut, f"{sites[1]}/b/whole": complete}
    for site in sites:
        for k in range(draw(st.integers(0, 5))):
            rows[f"{site}/other/{k}"] = page(prose(rng, 30))
    return rows, fraction


@examples(40, long=400)
@given(crawls())
def test_the_complete_page_stays_and_the_one_that_is_cut_off_goes(drawn):
    """Two pages of a site that has no other pages need a fraction of two thirds: nobody knows their template."""
    rows, fraction = drawn
    kept = spotsigs.dedup([{"url": url, "html": html} for url, html in rows.items()], keep="longest")
    complete = [url for url in rows if not url.endswith("/cut")]
    assert [row["url"] for row in kept if row["url"] in complete] == complete
    assert fraction < 0.7 or len(kept) == len(complete)


@pytest.mark.parametrize("more", [(), ("--memory", "1GB")])
def test_the_command_decides_alike_in_memory_and_on_disk(tmp_path, more):
    """By default the first page stays, which is the one that is cut off."""
    rng = random.Random(7)
    (tmp_path / "pages").mkdir()
    for k in range(4):
        complete = page(story := prose(rng, 40))
        (tmp_path / "pages" / f"{k}-a.html").write_text(complete[: complete.index(story) + len(story) * (k + 5) // 10])
        (tmp_path / "pages" / f"{k}-b.html").write_text(complete)
    words = ("dedup", "pages", "--workers", 1, *more)
    for keep, stays in (("longest", "b"), ("first", "a")):
        done = command(*words, "--out", keep, "--keep", keep, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert {path.name for path in (tmp_path / keep).glob("[!.]*")} == {f"{k}-{stays}.html" for k in range(4)}
