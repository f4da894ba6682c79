"""Foreign text on a terminal."""

from labelclean.errors import brief


def printable(text: str) -> str:
    """Spell out control characters and shorten: foreign text must not drive the terminal."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in brief(text)
    )
