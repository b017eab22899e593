"""The page that opens the results."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.claims.judged_claims import judge_all
from experiments.show.finding import finding
from experiments.show.overview import overview

RESULTS = Path(__file__).parents[2] / "results"


def test_the_committed_page_is_that_of_the_committed_results():
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == overview(RESULTS, judge_all(RESULTS))


def test_it_opens_with_the_finding_and_links_to_files_that_exist():
    text = overview(RESULTS, judge_all(RESULTS))
    assert text.startswith(f"# Results\n\n{finding(RESULTS)[0][:20]}")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 30
    assert [link for link in links if not (RESULTS / link).exists()] == []


def test_it_does_without_results(tmp_path):
    assert "not measured yet" in overview(tmp_path, judge_all(tmp_path))
