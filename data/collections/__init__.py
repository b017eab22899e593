"""Collections that are generated, fetched or stored."""
