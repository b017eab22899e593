"""What experiments are made of: cells, timings, curves, extracted collections."""
