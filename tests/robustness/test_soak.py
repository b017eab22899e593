"""A short soak writes its samples; half an hour of it is `make soak`."""

import csv
from pathlib import Path

import pytest
from in_process import process

SOAK = Path(__file__).parents[1].joinpath("soak.py")


@pytest.mark.long
def test_a_short_soak_leaves_its_samples(tmp_path: Path) -> None:
    run = process("--minutes", 0.3, "--folder", tmp_path, program=[str(SOAK)])
    assert "by 8 workers" in run.stdout, run.stderr  # growth is detected by a long one
    with (tmp_path / "soak.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 3
    assert max(int(row["processes"]) for row in rows) >= 9
