"""Two pages of one section of a site: the reference implementation, and every way to run."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from runs import deduplicated
from strategies import examples, is_long
from strategies import signatures_of as outlines
from test_engines import available
from test_templates import SCHEME, collections

from spotsigs.records import Document
from spotsigs.signatures.main_content import LINK
from spotsigs.signatures.sections import SECTION_TAU, folder_of, sections_of
from spotsigs.signatures.sites import site_of
from spotsigs.text.tokens import tokenize_marked
from spotsigs.text.visible import VisibleText

NAMES = ["", "a", "x/a", "y/a", "x/y/a", "https://h.org/a", "https://h.org/x/a?b=c/d#e/f", "http://h.org/x/b", "x\\a"]
FOLDERS = ["", "", "x", "y", "x/y", "h.org", "h.org/x", "h.org/x", "x"]


def test_the_folder_of_an_id():
    assert list(map(folder_of, NAMES)) == FOLDERS
    assert [folder_of(name) for name in ("https://h.org", "https://h.org?x/y", "é/\ud800/a")] == ["", "", "é/\ud800"]


@examples(100)
@given(st.data(), collections())
def test_pages_of_one_section_have_one_folder_and_first_link(data, pages):
    named = data.draw(st.lists(st.sampled_from(range(len(NAMES))), min_size=len(pages), max_size=len(pages)))
    first = [next((h for h, kind in page if kind >= LINK), None) for page in pages]
    expected = [FOLDERS[k] and link and (FOLDERS[k], link) for k, link in zip(named, first, strict=True)]
    sections = sections_of([NAMES[k] for k in named], outlines(pages))
    assert [bool(section) for section in sections.tolist()] == list(map(bool, expected))
    for i in range(len(pages)):
        for j in range(i):
            assert bool(expected[i] and expected[i] == expected[j]) == (sections[i] == sections[j] != 0)


def test_sections_of_different_hosts_differ():
    links = "<p>the <a href=#>home</a> of a page"
    rows = [f"https://{host}/a" for host in ("h.org", "g.org", "h.org/x", "h.org/x")]
    pages = [
        SCHEME.outline(tokenize_marked(VisibleText().marked(page)), site_of(page.id))
        for page in (Document(id=name, content=links) for name in rows)
    ]
    joined = outlines([list(zip(hashes.tolist(), kinds.tolist(), strict=True)) for hashes, kinds in pages])
    assert len(set(sections_of(rows, joined).tolist())) == 3


TAU, INSIDE = 0.25, SECTION_TAU


def sentences(rng, words, n):
    return ["the " + " ".join(rng.choice(words, 5)) + "." for _ in range(n)]


def site(rng, name, words, folders):
    """Return the pages of a site in several folders: of each story two editions, and pages with most of its text."""
    menu = "".join(f"<li><a href=#>{name} {word}</a></li>" for word in words[:12])
    rows = []
    for k in range(5):
        story = sentences(rng, words, 30)
        for folder in folders:
            for variant in range(3):
                text = " ".join(story[: 30 - 4 * variant] + sentences(rng, words, 2 + 14 * variant))
                page = f"<html><body><ul>{menu}</ul><p>{text}</p></body></html>"
                rows.append({"id": f"{folder}/{name}{k}-{variant}.html", "html": page, "site": f"{folder} {name}"})
    return rows


def pages():
    rng = np.random.default_rng(8)
    words = np.array([f"w{k}" for k in range(3000)])
    rows = [
        *site(rng, "a", rng.permutation(words), ["a/1.0", "a/1.1"]),
        *site(rng, "b", rng.permutation(words), ["https://b.org/1", "https://b.org/2"]),
        *site(rng, "c", rng.permutation(words), ["a/1.0"]),  # another site in a folder of the first
    ]
    rows += [{**rows[k], "id": f"{rows[k]['id']}?print"} for k in (0, 1, 7)]  # exact duplicates
    return [rows[k] for k in rng.permutation(len(rows))]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    rows = pages()
    for name, part in {"all": rows, "old": rows[:50], "new": rows[50:]}.items():
        lines = (json.dumps({key: row[key] for key in ("id", "html")}) for row in part)
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return folder, rows


def ran(folder, out, read, *words):
    kept, tables, printed = deduplicated(folder, out, read, "--tau", TAU, *words)
    return set(kept), tables, printed


WAYS = {
    "processes": ("--workers", 2),
    "budget": ("--memory", "1GB", "--workers", 1),
    "store": ("--store", "of-pages", "--workers", 1),
    "budget, processes": ("--memory", "2GB", "--workers", 2),
    "budget, dask": ("--engine", "dask", "--workers", 2, "--memory", "3GB"),
}


def near_of(folder, read, *words):
    """Return the similarity of all pairs, by ids, which `spotsigs pairs` lists whatever their sections."""
    out = folder / f"pairs-{read}"
    assert command("pairs", f"{read}.jsonl", "--out", out, "--tau", TAU, *words, cwd=folder).returncode == 0
    pairs = pd.read_parquet(out / "pairs.parquet", columns=["doc_a", "doc_b", "similarity"])
    return {frozenset((a, b)): similarity for a, b, similarity in pairs.itertuples(index=False)}


def require_promise(rows, kept_ids, near, inside=INSIDE):
    """Each removed page reaches the threshold of the pair with a kept page, and no two kept pages reach theirs."""
    of_site = {row["id"]: row["site"] for row in rows}

    def reaches(pair):
        return near.get(pair, 0) >= (inside if len({of_site[name] for name in pair}) == 1 else TAU)

    for name in of_site.keys() - kept_ids:
        assert any(reaches(frozenset((name, other))) for other in kept_ids)
    assert not any(pair <= kept_ids and reaches(pair) for pair in near)


@pytest.mark.parametrize("clusters", ["leaders", "components"])
def test_every_way_to_run_decides_alike_and_keeps_the_promise(inputs, clusters):
    folder, rows = inputs
    words = ("--clusters", clusters)
    stay, tables, printed = ran(folder, "one", "all", "--workers", 1, "--engine", "serial", *words)
    assert (
        "of two pages in the same folder, one is removed if the lower bound of their similarity reaches 0.44" in printed
    )
    plain, _, printed = ran(folder, "plain", "all", "--clusters", clusters, "--min-contained", 0)
    assert "folder" not in printed
    assert len(plain) + 3 < len(stay) < len(rows) - 20
    if clusters == "leaders":
        near = near_of(folder, "all")
        require_promise(rows, stay, near)
        require_promise(rows, plain, near, TAU)
    for way in [*list(WAYS)[:3], *(list(WAYS)[3:] if is_long() and available("distributed") else [])]:
        assert ran(folder, "other", "all", *words, *WAYS[way])[1] == tables, way


def test_the_order_of_the_pages_decides_only_which_is_kept(inputs):
    folder, rows = inputs
    lines = (folder / "all.jsonl").read_text().splitlines()
    (folder / "back.jsonl").write_text("\n".join(lines[::-1]) + "\n")
    stay, _, _ = ran(folder, "back", "back")
    require_promise(rows, stay, near_of(folder, "all"))


def test_added_pages_and_a_reference_keep_the_promise(inputs):
    folder, rows = inputs
    words = ("--workers", 1)
    for store in ([], ["--store", "of-old", "--memory", "1GB"]):
        first, _, _ = ran(folder, "old", "old", *words, *store)
    near = near_of(folder, "all", "--workers", 1)
    second, _, printed = ran(folder, "new", "new", "--store", "of-old", "--add", "--workers", 1)
    assert (
        "of two pages in the same folder, one is removed if the lower bound of their similarity reaches 0.44" in printed
    )
    stay = first | second
    new = {row["id"] for row in rows[50:]}
    crossed = {pair: s for pair, s in near.items() if pair & new}
    gone = new - stay
    assert gone
    require_promise([row for row in rows if row["id"] in stay | gone], stay, crossed)
    ran(folder, "against", "new", "--against", "old.jsonl", *words)
    ran(folder, "stored", "new", "--against", "of-old", *words[:2], "--memory", "1GB")
    of_site = {row["id"]: row["site"] for row in rows}
    removed = pd.read_csv(folder / "against-results/removed.csv")
    same = [of_site[a] == of_site[b] for a, b in zip(removed["doc"], removed["partner"], strict=True)]
    assert removed["similarity"][same].min() >= INSIDE
    assert removed["similarity"].min() < INSIDE


def test_text_and_whole_pages_have_no_sections(inputs, tmp_path):
    folder, _ = inputs
    for words in (("--boilerplate", "keep"), ("--boilerplate", "main_content")):
        plain, other = (ran(folder, "keep", "all", *words, "--min-contained", least) for least in (0, 0.01))
        assert plain[0] == other[0]
        assert "folder" not in other[2]
