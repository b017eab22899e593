"""Every other system of the sources, one file a method; imports `spotsigs` only."""
