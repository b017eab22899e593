"""The matrix of claims and collections: differences are paired, pooled over seeds, and judged by their interval."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hydra import initialize_config_dir

from experiments.config import composed
from experiments.studies.claims_by_collection import FAILS, HOLDS, OPEN, Matrix, _difference, _judged
from experiments.work.curves import Curve
from spotsigs.errors import InputError

CONF = Path(__file__).parents[2] / "conf"


def curve(true, false, missed):
    return Curve({"taus": [0.5], "true": [true], "false": [false], "missed": [missed]})


def test_a_difference_is_the_mean_over_seeds_of_paired_differences():
    good, bad = curve([8, 6], [0, 1], [1, 2]), curve([4, 3], [2, 2], [5, 5])
    curves = {"a": [good, bad], "b": [bad, bad]}
    value, low, high = _difference(curves, ["a", "b"])
    assert value == pytest.approx((good.micro[2, 0] - bad.micro[2, 0]) / 2)
    assert low <= 0 <= value <= high  # the second seed has no difference in any resample
    assert _difference(curves, ["b", "b"]) == (0, 0, 0)
    recall = _difference({"a": [good], "b": [bad]}, ["a", "b", "recall"])[0]
    assert recall == pytest.approx(good.micro[1, 0] - bad.micro[1, 0])


@pytest.mark.parametrize(
    ("values", "verdict"), [((0.2, 0.1, 0.3), HOLDS), ((-0.2, -0.3, -0.1), FAILS), ((0.1, -0.1, 0.3), OPEN)]
)
def test_the_interval_decides(values, verdict):
    assert _judged(values).startswith(f"{verdict}: ")


def test_claims_name_methods():
    with pytest.raises(InputError, match="'x' must name two of the methods"):
        Matrix(methods={"a": ""}, claims={"x": ["a", "b"]})


def test_the_matrix_of_a_small_collection(tmp_path):
    words = ["experiment.seeds=[5]", "+experiment.collections.tiny='data=tiny'", "workers=1", "engine=serial"]
    words += [f"~experiment.collections.{name}" for name in ("newsframes", "gold", "gold_prose", "package_docs")]
    words += ["experiment.step=0.1", f"experiment.results={tmp_path}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = composed("experiment=matrix", *words)
        told = settings.experiment(settings)
    with (tmp_path / "matrix/matrix.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["claim"]: row["tiny"] for row in csv.DictReader(file)}
    assert rows["SpotSigs beats LSH-S"].startswith(HOLDS)
    assert set(rows) == set(settings.experiment.claims)
    facts = (tmp_path / "matrix/facts.csv").read_text(encoding="utf-8")
    assert "tiny: SpotSigs: best F1" in facts
    assert "tiny: SpotSigs beats LSH-S" in facts
    assert np.char.count(told, "tiny") >= 2
