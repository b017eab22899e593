"""Near duplicates by their longest common subsequence."""
