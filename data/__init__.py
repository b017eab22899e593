"""Collections of the reproduction; each is a frozen dataclass with a YAML file in ``conf/data``."""
