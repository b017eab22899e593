"""The doors: the command `spotsigs`, and the functions that a program calls."""
