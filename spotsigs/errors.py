"""The one exception for what a user can mend."""


class InputError(ValueError):
    """Bad input or configuration: one sentence that names what, where, and what is allowed."""


def require(condition: bool, sentence: str) -> None:
    """Raise `InputError` with the sentence unless the condition holds."""
    if not condition:
        raise InputError(sentence)


def require_tau(tau: float) -> None:
    """Refuse a similarity threshold outside (0, 1]."""
    require(0.0 < tau <= 1.0, f"tau must lie in (0, 1], got {tau}")
