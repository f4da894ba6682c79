"""Strategies: files that were right once, and files that never were."""

import json
from typing import Any

from hypothesis import strategies as st

from hostile import HOSTILE

SCRAPS = [
    b"\0", b"\xff\xfe", b"\n", b",", b'"', b"{", b"[" * 50, b"}", b"nan", b"-1", b"9" * 30,
    b"\\ud800", b"null", b"true", b"1e999", b"\x80\x04.", b"PAR1", b"PK\x03\x04", b"\x93NUMPY",
    b"../", b"''",
    "é".encode(), b"\r", b"=", b"#", b"'''", b"[training]\n", b"\xef\xbb\xbf",
]  # fmt: skip
text = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12))
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), text,
        st.sampled_from(["../../etc/passwd", "label", "confirm", "keep", 10**30, -1, 0, 3]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)
    ),
    max_leaves=4,
)  # fmt: skip


@st.composite
def mutated(draw: Any, seeds: list[bytes]) -> bytes:
    """Cut, repeat, overwrite and insert pieces of a file that is right."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        length = draw(st.sampled_from([0, 1, 2, 8, 64, 4096]))
        piece = draw(st.one_of(st.sampled_from(SCRAPS), st.binary(max_size=8)))
        kind = draw(st.sampled_from(["insert", "replace", "cut", "repeat", "end"]))
        rest = data[place + length :]
        if kind == "insert":
            data = data[:place] + piece + data[place:]
        elif kind == "replace":
            data = data[:place] + piece + rest
        elif kind == "cut":
            data = data[:place] + rest
        elif kind == "repeat":
            data = data[:place] + data[place : place + length] * 2 + rest
        else:
            data = data[:place]
    return data


@st.composite
def altered_json(draw: Any, seed: bytes) -> bytes:
    """Put another value somewhere into a tree of JSON, or take one away."""
    tree = json.loads(seed)
    for _ in range(draw(st.integers(1, 3))):
        spot: Any = tree
        for _ in range(draw(st.integers(0, 3))):
            inner = [
                value
                for value in (spot.values() if isinstance(spot, dict) else spot)
                if isinstance(value, dict | list) and value
            ]
            if not inner:
                break
            spot = draw(st.sampled_from(inner))
        keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        if not keys:
            continue
        key = draw(st.sampled_from(keys))
        if draw(st.booleans()):
            spot[key] = draw(values)
        else:
            del spot[key]
    return json.dumps(tree).encode("utf-8", "surrogatepass")


@st.composite
def csv_tables(draw: Any) -> bytes:
    """Cells of any text under likely and unlikely names, quoted or not."""
    names = draw(
        st.lists(
            st.one_of(
                text,
                st.sampled_from(["image", "label", "split", "verified", "sample_id", "group",
                                 "sample_weight", "p_error", "labelclean_escaped"]),
            ),
            min_size=1,
            max_size=5,
        )
    )  # fmt: skip
    rows = draw(st.lists(st.lists(text, min_size=len(names), max_size=len(names)), max_size=5))
    quoted = draw(st.booleans())

    def cell(value: str) -> str:
        return '"' + value.replace('"', '""') + '"' if quoted else value

    lines = [",".join(map(cell, row)) for row in [names, *rows]]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@st.composite
def toml_recipes(draw: Any) -> bytes:
    """Sections and keys that exist or not, with values of any kind."""
    names = ["data", "model", "loss", "training", "correction", "evil"]
    keys = ["epochs", "name", "limit", "backbone", "learning_rate", "workers", "milestones",
            "batch_size", "mode", "q", "flag_above", "image_size", "max_pixels", "x"]  # fmt: skip
    scalar = st.one_of(
        st.integers(-(2**70), 2**70).map(str),
        st.floats().map(repr),
        st.sampled_from(["true", "'cce'", "[]", "[0.5]", "{}", "{a=1}", "2020-01-01", '"\\u0000"']),
        st.text(max_size=6),
    )
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            lines.append(f"[{draw(st.sampled_from(names))}]")
        lines.append(f"{draw(st.sampled_from(keys))} = {draw(scalar)}")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


decision_lines = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "row": st.one_of(st.integers(-2, 8), values),
            "sample_id": st.one_of(st.sampled_from(["s0", "s1", "s2"]), values),
            "decision": st.one_of(
                st.sampled_from(["confirm", "relabel", "drop", "unsure", "undo"]), values
            ),
            "label": st.one_of(st.sampled_from(["ant", "bee"]), values),
            "time": values,
        },
    ).map(json.dumps),
    text,
)
