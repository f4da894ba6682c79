"""Foreign text on a terminal."""


def printable(text: str) -> str:
    """Spell out control characters: foreign text must not drive the reader's terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
