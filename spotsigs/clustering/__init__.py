"""From pairs to clusters, to what stays, and to precision and recall."""
