"""Collections: readers and generators; each is a frozen dataclass with one YAML in `conf/data/`."""
