"""The choice of what happens to a page's boilerplate before its signatures are compared."""

from __future__ import annotations

from enum import Enum

from spotsigs.contracts import SignatureScheme


class Boilerplate(Enum):
    """Treatment of the text that surrounds the main content of a page.

    ``keep``: compare whole pages, as the paper does. ``remove``: remove the template of each page's site, found by
    comparing the pages of a collection. ``main_content``: keep the main content, found on each page alone. ``auto``:
    as ``remove``, which removes nothing from text without links.
    """

    auto = "auto"
    remove = "remove"
    keep = "keep"
    main_content = "main_content"


def boilerplate_of(scheme: str | None) -> Boilerplate:
    """Return the treatment of boilerplate of a scheme, by the name of its type."""
    return {"TemplateRemoval": Boilerplate.remove, "MainContent": Boilerplate.main_content}.get(
        scheme or "", Boilerplate.keep
    )


def with_boilerplate(scheme: SignatureScheme, boilerplate: Boilerplate) -> SignatureScheme:
    """Return a scheme that treats boilerplate, unless it is kept, from one with `SignatureScheme.located`."""
    from spotsigs.signatures.main_content import MainContent
    from spotsigs.signatures.template_removal import TemplateRemoval

    if boilerplate is Boilerplate.keep:
        return scheme
    treatment = MainContent if boilerplate is Boilerplate.main_content else TemplateRemoval
    return treatment(signature=scheme)
