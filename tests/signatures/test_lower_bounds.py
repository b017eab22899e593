"""Similarities are of what pages contain; what is missing for certainty lowers another number, their lower bound."""

import csv
import json

import numpy as np
import pytest
from in_process import command

import spotsigs

WORDS = np.array([f"w{k}" for k in range(4000)])


def prose(rng, sentences):
    return " ".join(f"the {' '.join(rng.choice(WORDS, 7))}." for _ in range(sentences))


def page(text, site=0):
    menu = "".join(f'<li><a href="/{k}">{name}{site}</a></li>' for k, name in enumerate("news sport mail help".split()))
    return f"<ul>{menu}</ul><p>{text}</p>"


def versions(rng, sites, change):
    """Return pages of sites without any other pages: an article on each, and the article once more after a change."""
    pages = []
    for site in range(sites):
        text = prose(rng, 40)
        first, second = f"In 2019. {text}", f"In 2020. {change(rng, text)}"
        pages += [{"id": f"a{site}", "html": page(first, site)}, {"id": f"b{site}", "html": page(second, site)}]
    return pages


def written(path, pages):
    path.write_text("\n".join(map(json.dumps, pages)) + "\n")
    return path


def reported(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def one_word(rng, text):
    return text.replace(text.split()[40], "other", 1)


def a_quarter(rng, text):
    """Exchange a quarter of the sentences, so that the similarity is about .6."""
    sentences = text.split(". ")
    return ". ".join(sentences[:30]) + ". " + prose(rng, 10)


@pytest.mark.parametrize("name", ["{}", "https://x.org/{}"], ids=["names", "URLs"])
def test_two_pages_of_a_site_alone_are_as_similar_as_what_they_contain(tmp_path, name):
    pages = versions(np.random.default_rng(1), 1, one_word)
    named = [row | {"id": name.format(row["id"])} for row in pages]
    done = command("pairs", written(tmp_path / "x.jsonl", named), "--tau", 0.05, "--workers", 1)
    header, row = (line.split("\t") for line in done.stdout.splitlines())
    pair = dict(zip(header, row, strict=True))
    shared, union = int(pair["shared"]), int(pair["union"])
    assert float(pair["similarity"]) == shared / union > 0.85
    assert float(pair["lower_bound"]) == shared / (shared + 2 * union) < 1 / 3  # as many signatures are missing


@pytest.mark.parametrize("tau", [0.05, 0.25, 0.35, 0.44, 0.8])
def test_a_higher_threshold_finds_versions_of_pages_whose_template_is_unknown(tmp_path, tau):
    pages = versions(np.random.default_rng(2), 45, one_word)
    path = written(tmp_path / "x.jsonl", pages)
    for words in ((), ("--memory", "900MB"), ("--clusters", "components"), ("--min-contained", 0)):
        done = command(
            "dedup", path, "--out", "none", "--results", tmp_path / "r", "--tau", tau, "--workers", 1, *words
        )
        assert done.returncode == 0, done.stderr
        removed = reported(tmp_path / "r" / "removed.csv")
        assert [row["doc"] for row in removed] == [f"b{k}" for k in range(45)]
        assert min(float(row["similarity"]) for row in removed) >= max(tau, 0.85)
        assert max(float(row["lower_bound"]) for row in removed) <= 1 / 3
    assert spotsigs.dedup([row["html"] for row in pages], tau) == [row["html"] for row in pages[::2]]


def test_pages_that_share_much_are_removed_only_if_their_template_is_known(tmp_path):
    """Where the template is unknown, what two pages share may be the template."""
    rng = np.random.default_rng(3)
    pages = versions(rng, 1, a_quarter)
    path = written(tmp_path / "x.jsonl", pages)
    assert len(command("pairs", path, "--tau", 0.25, "--workers", 1).stdout.splitlines()) == 2
    assert len(spotsigs.dedup([row["html"] for row in pages], 0.25)) == 2
    others = [page(prose(rng, 40)) for _ in range(4)]
    kept = spotsigs.dedup([*(row["html"] for row in pages), *others], 0.25)
    assert kept == [pages[0]["html"], *others]


def test_of_little_that_remains_the_lower_bound_is_reported(tmp_path):
    """Two pages share all that remains of them, a twelfth of what they had: the rest is of their siblings."""
    rng = np.random.default_rng(4)
    quoted, own = prose(rng, 88), [prose(rng, 16) for _ in range(2)]
    pages = [f"{quoted} {own[0]}", f"{quoted} {own[0]} also"]
    siblings = [f"{quoted} {prose(rng, 400)}" for _ in range(3)]
    rows = [{"id": f"{k}", "html": page(text)} for k, text in enumerate([*pages, *siblings])]
    path = written(tmp_path / "x.jsonl", rows)
    command("pairs", path, "--tau", 0.05, "--workers", 1, "--out", tmp_path / "p")
    pairs = spotsigs_pairs(tmp_path / "p")
    assert pairs["0", "1"]["similarity"] > 0.85
    assert pairs["0", "1"]["lower_bound"] < pairs["0", "1"]["similarity"]


def spotsigs_pairs(folder):
    import pandas as pd

    table = pd.read_parquet(folder / "pairs.parquet")
    return {(row.doc_a, row.doc_b): row._asdict() for row in table.itertuples(index=False)}
