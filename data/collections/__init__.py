"""Collections that are generated, fetched or part of the checkout."""
