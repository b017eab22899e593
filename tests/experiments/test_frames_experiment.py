"""The finding's figure, on packages made for the test."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from test_newsframes import collection, tarballs  # noqa: F401

from experiments.show.quality_figures import thresholds
from experiments.studies import frame_density as study
from experiments.studies.frame_density import BEST, FIXED, FrameDensity, Seeded, methods
from experiments.work.curves import Curve, judge
from experiments.work.extracted_collections import Source, read
from experiments.work.study import Work
from spotsigs.engines import Serial
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.signatures.idf import IdfFilter
from spotsigs.text.visible import VisibleText


def curve(true, false, missed):
    return Curve({"taus": [0.2, 0.44], "true": true, "false": false, "missed": missed})


def test_seeds_are_averaged_and_resampled():
    good = curve([[4, 4], [4, 4]], [[0, 0], [0, 0]], [[0, 0], [0, 0]])
    poor = curve([[2, 2], [0, 0]], [[2, 2], [0, 0]], [[2, 2], [4, 4]])
    both = Seeded([good, poor])
    assert both.f1(None) == pytest.approx(0.75)
    assert both.f1(0.44) == pytest.approx(0.5)
    assert set(np.round(both.resampled(0.44), 6)) == {0.0, 0.5, 1.0}  # neither seed, one, both
    assert both.interval(0.44) == (0.0, 1.0)
    assert Seeded([good, good]).interval(None) == (1.0, 1.0)


class CollectionWorks:
    """Judges collections of the test's packages."""

    def __init__(self, work, step):
        self.work, self.step = work, step

    def at(self, words, text="visible"):
        given = dict(word.removeprefix("data.").split("=") for word in words.split()[1:])
        prose = float(given["prose"]) if "prose" in given else None
        found = collection(self.tarballs, seed=int(given["seed"]), prose=prose)
        return SimpleNamespace(settings=SimpleNamespace(collection=found))

    def curves(self, words, chosen, describe):
        found = {}
        for method in chosen:
            source = Source(
                collection=self.at(words).settings.collection, text=VisibleText(), signature=method.signature
            )
            stored = read(source, self.work.cells.folder, Serial())
            cell = judge(stored=stored, idf_filter=IdfFilter(), matcher=SpotSigsTight(), taus=thresholds(self.step))
            found[method.label] = Curve(cell)
        return found


@pytest.mark.long
def test_the_figure(tarballs, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(CollectionWorks, "tarballs", tarballs, raising=False)
    monkeypatch.setattr(study, "CollectionWorks", CollectionWorks)
    monkeypatch.setattr(study, "overrides", list)
    settings = SimpleNamespace(names={"experiment": "frames", "data": "newsframes"}, seed=0, workers=1)
    monkeypatch.setattr(
        Work, "begin", lambda results, settings: Work(
            settings=settings, folder=results / "frames", cells=SimpleNamespace(folder=tmp_path / "cells", log=[])
        ),
    )  # fmt: skip
    told = FrameDensity(results=tmp_path, seeds=[5, 6], densities=[0.15], step=0.02)(settings)
    assert "Signatures over the density of spots in frames" in told
    folder = tmp_path / "frames"
    for suffix in ("svg", "png", "csv", "json"):
        assert (folder / f"frames.{suffix}").stat().st_size > 0
    with (folder / "frames.csv").open(encoding="utf-8", newline="") as file:
        points = list(csv.DictReader(file))
    assert {point["panel"] for point in points} == {BEST, FIXED}
    assert len(points) == 2 * 2 * len(methods())
    for point in points:
        assert float(point["low"]) <= float(point["y"]) <= float(point["high"])
    for method in methods():
        line = [float(point["x"]) for point in points if point["series"] == method.label and point["panel"] == BEST]
        assert line == sorted(line)
        assert line[1] > line[0] + 0.05  # the frames with more prose
