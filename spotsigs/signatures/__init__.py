"""From tokens to signatures, and from signatures to vectors."""
