"""Reference implementation of the prefix of a row."""


def prefix(document, classes, size):
    """Return the signatures that begin before a position, rarest first, with position and weight in the prefix.

    Signatures of class 0 count for the positions and are left out.
    """
    found, position = [], 0
    for signature in sorted(document, key=lambda s: (classes[s], s)):
        if position < size and classes[signature] > 0:
            weight = min(document[signature], size - position, 255)
            found.append((signature, min(position, 65535), weight))
        position += document[signature]
    return found
