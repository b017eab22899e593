"""Data sets of other packages by name: their rows as documents, and the errors, with modules in their place."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from archives import read

from data.collections import named_sets
from data.collections.named_sets import HuggingFace, IrDataset
from spotsigs.errors import InputError
from spotsigs.records import Skipped

ROWS = [{"id": k, "text": f"the bridge of page {k}", "cluster": k // 2} for k in range(3)] + [{"id": 9, "text": None}]


class Rows(list):
    _fingerprint = "f1"
    column_names = ("id", "text", "cluster")


class Page(NamedTuple):
    doc_id: str
    title: str
    body: str
    body_content_type: str = "text/html"

    def default_text(self):
        return f"{self.title} {self.body}"


class Docs(list):
    pass


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    def load_dataset(path, subset, split):
        if path != "org/pages":
            raise ValueError(f"{path} was not found\nmore")
        return Rows(ROWS)

    pages = Docs([Page("a", "A", "<p>one"), Page("b", "B", "two", "text/plain"), Page("c", "C", "<p>three")])
    known = SimpleNamespace(has_docs=lambda: True, docs_count=lambda: 3, docs_iter=lambda: pages)
    datasets = {"pages": known, "queries": SimpleNamespace(has_docs=lambda: False)}
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setitem(sys.modules, "ir_datasets", SimpleNamespace(load=datasets.__getitem__))
    yield
    named_sets.loaded_rows.cache_clear()
    named_sets.opened_dataset.cache_clear()


def test_rows_of_the_hub_are_documents(monkeypatch):
    monkeypatch.setattr(named_sets, "A_SHARD", 2)
    *pages, last = read(HuggingFace(path="org/pages"))
    expected = [(str(row["id"]), row["text"], "text/plain", str(row["cluster"])) for row in ROWS[:3]]
    assert [(page.id, page.content, page.media_type, page.cluster) for page in pages] == expected
    assert isinstance(last, Skipped)
    assert "f1" in repr(HuggingFace(path="org/pages"))  # what is cached is of this version


def test_documents_of_ir_datasets_are_read_by_type(monkeypatch):
    monkeypatch.setattr(named_sets, "A_SHARD", 2)
    pages = {page.id: (page.content, page.media_type) for page in read(IrDataset(path="pages"))}
    assert pages == {"a": ("<p>one", "text/html"), "b": ("B two", "text/plain"), "c": ("<p>three", "text/html")}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: HuggingFace(path="org/pges"), "data.split=train cannot be loaded: org/pges was not"),
        (lambda: HuggingFace(path="org/pages", id_column="ids"), "org/pages has no column 'ids'; did you"),
        (lambda: HuggingFace(path="org/pages", text_column="body"), "neither a column 'html' nor 'body'; name one by"),
        (lambda: IrDataset(path="pags"), "data.path=pags: ir_datasets has no such data set"),
        (lambda: IrDataset(path="queries"), "data.path=queries: the data set has no documents"),
    ],
)
def test_a_wrong_name_is_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.parametrize(("name", "make"), [("datasets", HuggingFace), ("ir_datasets", IrDataset)])
def test_without_the_package_the_extra_is_named(monkeypatch, name, make):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=rf"the package {name} is not installed; `pip install 'spotsigs\[hub\]'`"):
        make(path="pages")
