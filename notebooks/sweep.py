# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A sweep
#
# `python run.py -m` runs every combination of the given values, and writes `sweep.csv` with a row for each. This
# notebook runs a small sweep on the 45 pages of `tiny`, loads the table and plots it. The same code reads any sweep.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

root = next(path for path in [Path.cwd(), *Path.cwd().parents] if (path / "run.py").exists())
folder = Path(tempfile.mkdtemp()) / "sweep"
taus = ",".join(f"{step / 10:g}" for step in range(1, 10))
words = ["data=tiny", "matcher=spotsigs,lsh_native", "signature=spotsigs,shingles3", f"tau={taus}"]
command = [sys.executable, "run.py", "-m", *words, f"hydra.sweep.dir={folder}"]
done = subprocess.run(command, cwd=root, capture_output=True, text=True)
assert done.returncode == 0, done.stderr

# %% [markdown]
# ## The table
#
# The columns in front are the choices that differ, in the words of the command line.

# %%
[path] = folder.rglob("sweep.csv")
table = pd.read_csv(path)
table[["matcher", "signature", "tau", "precision", "recall", "f1"]].round(3).head(12)

# %% [markdown]
# ## Quality over the threshold
#
# One line for each method. All thresholds of an exact method are cuts of a single join.

# %%
figure, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True)
for axis, measure in zip(axes, ("precision", "recall", "f1"), strict=True):
    for (matcher, signature), rows in table.groupby(["matcher", "signature"]):
        axis.plot(rows["tau"], rows[measure], label=f"{matcher}, {signature}")
    axis.set(title=measure, xlabel="tau")
axes[0].legend(fontsize=7)
plt.show()

# %% [markdown]
# ## The best threshold of each method

# %%
table.loc[table.groupby(["matcher", "signature"])["f1"].idxmax(), ["matcher", "signature", "tau", "f1"]].round(3)
