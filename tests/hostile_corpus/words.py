"""Hostile recipes and decisions."""

import json
from collections.abc import Iterator
from pathlib import Path

from hostile_corpus.case import USAGE, Case
from planted import audit_probs, plant


def build(folder: Path) -> Iterator[Case]:
    """Write hostile recipes, and hostile decisions about one finished run."""
    data = plant(folder, rows=60, planted=6)
    run = audit_probs(data, folder / "run")
    recipes = {
        "no TOML": b"\x80\x04K\x01.",
        "nested 20,000 deep": b"a = " + b"[" * 20_000,
        "an unknown section": b"[evil]\nx = 1\n",
        "an unknown key": b"[training]\nevil = 1\n",
        "a key outside any section": b"epochs = 3\n",
        "text instead of a number": b"[training]\nepochs = 'many'\n",
        "NaN": b"[training]\nlearning_rate = nan\n",
        "minus infinity": b"[training]\nlearning_rate = -inf\n",
        "an integer of 40 digits": b"[training]\nepochs = " + b"9" * 40 + b"\n",
        "an integer of 5,000 digits": b"[training]\nepochs = " + b"9" * 5000 + b"\n",
        "a date": b"[training]\nepochs = 2020-01-01\n",
        "a table instead of a value": b"[training.epochs]\nx = 1\n",
        "a list of a section": b"[[training]]\nepochs = 1\n",
        "an unknown loss": b"[loss]\nname = '__import__'\n",
        "an unknown parameter": b"[loss]\nname = 'gce'\nq = 0.5\nevil = 1\n",
        "a parameter that is a list": b"[loss]\nname = 'gce'\nq = [1, 2]\n",
        "a backbone with a path": b"[model]\nbackbone = '../../etc/passwd'\n",
        "milestones of text": b"[training]\nmilestones = ['x']\n",
        "a negative share": b"[correction]\nrelabel_above = -1.0\n",
    }
    for number, (name, content) in enumerate(recipes.items()):
        path = folder / f"recipe{number}.toml"
        path.write_bytes(content)
        flags = ("--features", data.features, "--recipe", path, "--out", folder / f"out{number}")
        yield Case(f"recipe: {name}", ("audit", data.table, *flags), USAGE)

    def line(**changes: object) -> str:
        entry = {"row": 0, "sample_id": "s0", "decision": "confirm", "label": None, "time": "now"}
        return json.dumps({**entry, **changes})

    decisions = {
        "no JSON": "{",
        "nested 100,000 deep": "[" * 100_000,
        "an integer of 5,000 digits": '{"row": ' + "9" * 5000 + "}",
        "a list": "[]",
        "a row beyond the end": line(row=60),
        "a negative row": line(row=-1),
        "a row that is true": line(row=True),
        "a row that is 0.0": line(row=0.0),
        "the sample_id of another row": line(sample_id="s1"),
        "an unknown decision": line(decision="delete"),
        "a decision that is a list": line(decision=["drop"]),
        "an unknown label": line(decision="relabel", label="dog"),
        "a label that is a list": line(decision="relabel", label=["ant"]),
        "no label": line(decision="relabel"),
        "a half line": line()[:-5],
        "NUL bytes": "\0" * 50,
    }
    for number, (name, text) in enumerate(decisions.items()):
        path = folder / f"decisions{number}.jsonl"
        path.write_text(line() + "\n" + text + "\n")
        flags = ("--decisions", path, "--manifest", data.table)
        target = folder / f"export{number}.csv"
        yield Case(f"decisions: {name}", ("export", run, target, *flags), words="line 2")
    path = folder / "utf16.jsonl"
    path.write_bytes(line().encode("utf-16"))
    asks = ("report", run, "--decisions", path, "--manifest", data.table)
    yield Case("decisions: UTF-16", asks, words="cannot be read")
