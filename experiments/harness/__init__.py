"""Parts of experiments: cells, timings, curves, extracted collections."""
