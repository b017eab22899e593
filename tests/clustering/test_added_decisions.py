"""Decisions on pages that are added to a store: the promise holds over all pages, and earlier decisions are final."""

import json
import shutil
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from runs import ran
from strategies import triples

from spotsigs import SpotSignatures, near_duplicates
from spotsigs.method import Method
from spotsigs.outofcore.pipeline import read_decisions, write_decisions

TAU = 0.3


def pages(rng, n):
    """Draw pages of two or three of few sentences, so that many are similar through others; some are copies."""
    words = [f"w{k}" for k in range(200)]
    sentences = [" ".join(f"the {word}" for word in rng.choice(words, 5)) for _ in range(7)]
    drawn = (rng.permutation(7)[: rng.integers(2, 4)] for _ in range(n))
    texts = (". ".join(sentences[s] for s in chosen) for chosen in drawn)
    return [{"id": f"{k:02}", "text": text, "date": f"2008-07-{1 + k * 7 % 28:02}"} for k, text in enumerate(texts)]


def names(path, column="doc"):
    return pd.read_csv(path, dtype=str)[column].tolist()


CASES = [
    pytest.param(keep, seed, "serial", marks=[pytest.mark.long] if seed else [])
    for keep in ("first", "longest", "newest", "none")
    for seed in range(3)
]


@pytest.mark.parametrize(("keep", "seed", "engine"), [*CASES, ("longest", 3, "processes")])
def test_the_promise_holds_over_all_batches(tmp_path, keep, seed, engine):
    rng = np.random.default_rng(seed)
    rows = pages(rng, 24)
    pairs = near_duplicates([row["text"] for row in rows], TAU, method=Method.of(signature=SpotSignatures()))
    near = {frozenset((rows[i]["id"], rows[j]["id"])): s for i, j, s in triples(pairs)}
    assert len(near) > 20
    base = ["data=jsonl", f"engine={engine}", "workers=2", f"tau={TAU}", f"keep={keep}", "memory=2GB"]
    kept, removed, seen = set(), {}, set()
    for k, part in enumerate((rows[:9], rows[9:17], rows[17:])):
        (tmp_path / f"{k}.jsonl").write_text("\n".join(map(json.dumps, part)))
        ran(tmp_path / f"add{k}", *base, f"data.path={tmp_path / f'{k}.jsonl'}", f"store={tmp_path / 's'}", "add=true")
        new = {row["id"] for row in part}
        stays = set(names(tmp_path / f"add{k}/kept.csv"))
        table = pd.read_csv(tmp_path / f"add{k}/removed.csv", dtype={"doc": str, "kept_instead": str, "partner": str})
        goes = {row.doc: row for row in table.itertuples()}
        assert stays | set(goes) == new
        assert not stays & set(goes)
        kept, seen = kept | stays, seen | new
        removed |= goes
        near_now = {pair: s for pair, s in near.items() if pair <= seen}
        if keep == "none":
            assert stays == new - {name for pair in near_now for name in pair}
            continue
        for name, row in goes.items():
            assert row.kept_instead in kept
            assert row.partner == row.kept_instead
            assert row.similarity == pytest.approx(near_now[frozenset((name, row.kept_instead))])
            assert row.similarity >= TAU
            assert row.kept_instead in row.reason
        assert not [pair for pair in map(frozenset, combinations(sorted(kept), 2)) if pair in near_now]
    assert removed


def test_pages_that_no_run_has_decided_are_decided_with_the_new_ones(tmp_path):
    rows = pages(np.random.default_rng(4), 20)
    base = ["data=jsonl", "engine=serial", f"tau={TAU}", f"store={tmp_path / 's'}", "memory=1GB"]
    for k, part in enumerate((rows[:12], rows[12:])):
        (tmp_path / f"{k}.jsonl").write_text("\n".join(map(json.dumps, part)))
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ran(tmp_path / "0", *base, f"data.path={tmp_path / '0.jsonl'}", "add=true")
    assert int(read_decisions(tmp_path / "s", 12).sum()) == len(names(tmp_path / "0/kept.csv"))
    shutil.rmtree(tmp_path / "s" / "decided")
    text = ran(tmp_path / "1", *base, f"data.path={tmp_path / '1.jsonl'}", "add=true", f"copy={tmp_path / 'copy'}")
    assert "no finished run has decided the 12 earlier documents" in text
    ran(tmp_path / "whole", *base[:3], f"data.path={tmp_path / 'all.jsonl'}")
    assert names(tmp_path / "1/kept.csv") == names(tmp_path / "whole/kept.csv")
    [copied] = (tmp_path / "copy").glob("*.jsonl")
    new = {row["id"] for row in rows[12:]}
    wanted = [name for name in names(tmp_path / "1/kept.csv") if name in new]
    assert [json.loads(line)["id"] for line in copied.read_text().splitlines()] == wanted


def test_decisions_of_a_store_are_read_as_they_were_written(tmp_path):
    kept = np.array([True, False, True])
    write_decisions(tmp_path, kept, 0.3)
    assert read_decisions(tmp_path, 3).tolist() == kept.tolist()
    assert read_decisions(tmp_path, 2) is None
