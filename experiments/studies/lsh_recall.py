"""The recall of LSH that its S-curve predicts, beside the measured one (the paper's section 5.3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.harness.study import Work
from spotsigs.method import Method

K = 6
"""Min-hashes of a band, as in the paper."""
EXACT, PREDICTED, NEARLY = "SpotSigs", "S-curve's prediction", "98 % of SpotSigs"


def predicted_rows(
    work: Work, methods: Mapping[str, Method], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return rows of the expected recall of LSH by its number of tables: the true pairs, weighted by the S-curve.

    The last row is 98 % of the recall of the exact join.
    """
    from baselines.lsh_native import s_curve

    method, stored = methods[EXACT], work.read(methods[EXACT])
    truth = stored.truth()
    pairs = stored.prepare_join(method).match(method.matcher.with_threads(1)).pairs
    same = (truth.labels[pairs.i] == truth.labels[pairs.j]) & (truth.labels[pairs.i] >= 0)
    sizes = np.bincount(truth.labels[truth.labels >= 0])
    positive = (sizes * (sizes - 1) // 2).sum()
    exact = next(row for row in rows if row["of"] == EXACT)
    shared = {**exact, "of": PREDICTED, "method": PREDICTED, "recall_low": None, "recall_high": None}
    tables = sorted({row["l"] for row in rows if row["l"] is not None})
    expected = (float(s_curve(K, number, pairs.similarity[same]).sum() / positive) for number in tables)
    predicted = [shared | {"l": number, "recall": recall} for number, recall in zip(tables, expected, strict=True)]
    return [*predicted, shared | {"of": NEARLY, "method": NEARLY, "l": None, "recall": 0.98 * exact["recall"]}]
