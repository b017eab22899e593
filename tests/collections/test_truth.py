"""Truth in a file: clusters, judged pairs and qrels, compared with labels in the data and with counts by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import front_door
from runs import configured

from data.truth import truth_of_pairs
from spotsigs.clustering.clusters import cluster
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import evaluate
from spotsigs.records import Pairs, Truth
from spotsigs.workers.engines import Serial

STORIES = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b", "c1": "c"}
TEXTS = {
    "a": "The council has approved the plan for a new bridge that will be built by the end of the year.",
    "b": "A win in the rain is a win, and the team will be proud of the result for the rest of a long season.",
    "c": "The price of an apple was higher than the price of a pear in the market on the first day of the month.",
}
PAIRS = [("a1", "a2", 1), ("a2", "a3", 2), ("b1", "b2", 1), ("a1", "b1", 0), ("c1", "b2", -1)]


@pytest.fixture
def pages(tmp_path):
    path = tmp_path / "pages.jsonl"
    rows = [{"id": name, "text": f"{TEXTS[story]} {name}"} for name, story in STORIES.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"id": "empty"}\n')
    return path


def truth_of(pages, text, name="truth.tsv", *words):
    (pages.parent / name).write_text(text)
    chosen = configured("data=jsonl", f"data.path={pages}", f"data.truth={pages.parent / name}", *words)
    signatures = chosen.method.extract(chosen.collection, Serial()).signatures
    return chosen.collection.truth(signatures.doc_ids, signatures.documents.clusters, signatures.skipped)


def lines(*rows, separator="\t"):
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize("head", ["", "id\tcluster\n"])
def test_clusters_are_those_of_labels_in_the_data(pages, head):
    truth = truth_of(pages, head + lines(*STORIES.items()))
    assert (truth.labels.tolist(), truth.names, truth.judged) == ([0, 0, 0, 1, 1, 2], ("a", "b", "c"), None)
    some = lines(("a1", "x"), ("b2", "x"), ("empty", "x"))
    alone = truth_of(pages, some, "some.tsv", "data.unlabelled=alone")
    assert alone.labels.tolist() == [0, -1, -1, -1, 0, -1]
    assert truth_of(pages, some, "some.tsv", "data.unlabelled=drop").labels.tolist() == [0, 0]


def test_a_table_of_clusters_can_have_the_sites(pages):
    sited = lines(("id", "cluster", "site"), *((name, story, f"{name[1]}.example") for name, story in STORIES.items()))
    truth = truth_of(pages, sited)
    assert (truth.labels.tolist(), truth.judged) == ([0, 0, 0, 1, 1, 2], None)
    words = ("data=jsonl", f"data.path={pages}", f"data.truth={pages.parent / 'truth.tsv'}")
    collection = configured(*words).collection
    assert collection.sites == {name: f"{name[1]}.example" for name in STORIES}
    some = truth_of(pages, "\n".join(sited.splitlines()[:3]), "some.tsv", "data.unlabelled=drop")
    assert some.labels.tolist() == [0, 0]


@pytest.mark.parametrize(
    "text",
    [
        lines(*PAIRS),
        lines(("first", "second", "grade"), *PAIRS),
        lines(
            *((b, a, grade) for a, b, grade in PAIRS), *PAIRS, ("a1", "a1", 1)
        ),  # both directions, a page with itself
        lines(*((a, 0, b, grade) for a, b, grade in PAIRS), separator=" "),  # qrels
        lines(*PAIRS, ("a1", "empty", 1)),  # a page that cannot be read
    ],
    ids=["pairs", "head", "both directions and a page with itself", "qrels", "unreadable"],
)
def test_judged_pairs(pages, text):
    truth = truth_of(pages, text)
    assert truth.labels.tolist() == [0, 0, 0, 1, 1, 2]
    assert truth.judged.keys.tolist() == [0 * 6 + 1, 0 * 6 + 3, 1 * 6 + 2, 3 * 6 + 4, 4 * 6 + 5]
    assert truth.judged.positive.tolist() == [True, False, True, True, False]
    i, j = np.array([0, 0, 0, 2]), np.array([1, 2, 3, 5])  # positive, unjudged, negative, unjudged
    quality = evaluate(Pairs.build(i, j, np.ones(4), 6), truth)
    counted = quality.pairs
    counts = counted.true_pairs, counted.reported_pairs, counted.positive_pairs, counted.unjudged_pairs
    assert counts == (1, 2, 3, 2)
    assert (quality.precision, quality.recall) == (1 / 2, 1 / 3)
    assert (quality.documents.stories, quality.documents.duplicates) == (3, 3)


def test_a_page_that_no_pair_names_is_neither_lost_nor_left():
    truth = truth_of_pairs(np.array([0, 1]), np.array([1, 2]), np.array([True, False]), 5)
    assert truth.labels.tolist() == [0, 0, 1, -1, -1]
    none = np.empty(0, np.int32)
    quality = evaluate(Pairs.build(none, none, np.empty(0), 5), truth, kept=np.array([False, False, True, True, False]))
    of = quality.documents
    assert (of.stories, of.stories_lost, of.duplicates, of.duplicates_left) == (2, 1, 1, 0)


@given(st.lists(st.integers(0, 3), min_size=3, max_size=12), st.data())
def test_all_pairs_judged_are_the_clusters(labels, data):
    labels = np.array(labels)
    i, j = np.triu_indices(len(labels), 1)
    reported = data.draw(st.lists(st.booleans(), min_size=len(i), max_size=len(i)))
    pairs = Pairs.build(i[reported], j[reported], np.ones(sum(reported)), len(labels))
    wanted = evaluate(pairs, Truth.from_clusters(map(str, labels)), cluster(pairs), resamples=0)
    judged = truth_of_pairs(i, j, labels[i] == labels[j], len(labels))
    np.testing.assert_equal(repr(evaluate(pairs, judged, cluster(pairs), resamples=0)), repr(wanted))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"truth.tsv is empty; a line has id, cluster, or id, id, grade, or"),
        ("a1\n", r"line 1 of .*truth.tsv has 1 column; every line has two \(id, cluster\), three"),
        ("a1\tx\na2\n", r"line 2 of .* has 1 column"),
        (
            "a1\tx\nzz\tx\nzy\tx\n",
            r"names 2 pages that the collection does not have, the first 'zz' in line 2; .* 'a1'",
        ),
        ("a1\tx\na1\ty\n", r"line 2 of .* gives 'a1' the cluster 'y', and line 1 gives it 'x'; delete one"),
        ("a1\ta2\t1\na2\ta1\t0\n", r"lines 1 and 2 of .* contradict each other about 'a2' and 'a1'"),
        ("a1\ta2\t1\na2\ta3\tgood\n", r"the grade 'good' in line 2 of .* is no number"),
        ("a1\ta2\t1\nq\ta3\t0\n", r"names 1 page that the collection does not have, the first 'q' in line 2"),
    ],
)
def test_each_fault_is_one_sentence(pages, text, sentence):
    with pytest.raises(InputError, match=sentence) as raised:
        truth_of(pages, text)
    assert str(raised.value).startswith("data.truth: ")
    assert "\n" not in str(raised.value)


def test_a_run_is_evaluated_by_the_file(pages, tmp_path):
    (tmp_path / "truth.tsv").write_text(lines(*PAIRS, ("a1", "a1", 1), PAIRS[0]))
    words = ["data=jsonl", f"data.path={pages}", f"data.truth={tmp_path / 'truth.tsv'}", "engine=serial", "idf_min=0"]
    done = front_door(*words, f"hydra.run.dir={tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    assert "1 pair of a page with itself is ignored" in done.stderr
    assert f"1 of {len(PAIRS) + 2} lines repeat a pair, which counts once" in done.stderr
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["true_pairs"], metrics["reported_pairs"], metrics["unjudged_pairs"]) == (3, 3, 1)  # a1 and a3
    missing = front_door(*words, f"hydra.run.dir={tmp_path / 'other'}", f"data.truth={tmp_path / 'none.tsv'}")
    assert missing.returncode == 1
    assert missing.stderr == f"error: data.truth: {tmp_path / 'none.tsv'} cannot be read: No such file or directory\n"
