"""Losses side by side: means over seeds, and how far seeds alone move them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelclean.benchmark.papers.table import Found

COMPARED = {
    "final_accuracy": "accuracy",
    "ap_p_error": "AP of errors",
    "f1": "F1 of the cut",
    "label_accuracy_corrected": "right labels",
    "seconds": "seconds",
}
"""Measure of a cell, and what it is called in the table."""
_RANKED_BY = "ap_p_error"


def compare_losses(found: Found) -> list[dict[str, Any]]:
    """Give a line per noise and loss, the loss that finds errors best first.

    Args:
        found: Finished cells and what they measured.

    Returns:
        Noise, loss, number of seeds, and of every measure the mean and the standard deviation
        over the seeds (None for one seed).
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cell, content in found:
        groups.setdefault((cell.noise, cell.loss), []).append(content["measures"])
    lines: list[dict[str, Any]] = []
    for (noise, loss), measured in groups.items():
        line: dict[str, Any] = {"noise": noise, "loss": loss, "seeds": len(measured)}
        for name in COMPARED:
            values = [one[name] for one in measured if one.get(name) is not None]
            line[name] = float(np.mean(values)) if values else None
            line[f"{name}_spread"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
        lines.append(line)
    return sorted(lines, key=lambda line: (line["noise"], -(line[_RANKED_BY] or 0.0)))


def describe_comparison(facts: Mapping[str, Any]) -> str:
    """Give the comparison as lines of text."""
    lines: Sequence[Mapping[str, Any]] = facts["losses"]
    width = max(len("loss"), *(len(str(line["loss"])) for line in lines))
    parts = [
        f"Trained on {facts['rows_trained']} rows, accuracy measured on {facts['rows_measured']}",
        "The labels as given are taken for the truth; the errors to find were planted."
        if facts["labels_taken_for_the_truth"]
        else f"The truth is the column {facts['truth']!r}.",
    ]
    for noise in dict.fromkeys(str(line["noise"]) for line in lines):
        own = [line for line in lines if line["noise"] == noise]
        title = "Labels as given" if noise == "given" else f"Planted {noise}"
        parts += ["", f"{title}, mean (standard deviation over {own[0]['seeds']} seeds)"]
        parts.append(f"  {'loss':<{width}}  " + "  ".join(f"{t:>15}" for t in COMPARED.values()))
        parts += [
            f"  {line['loss']:<{width}}  " + "  ".join(f"{_cell(line, n):>15}" for n in COMPARED)
            for line in own
        ]
        parts.append(f"  {_verdict(own)}")
    return "\n".join(parts)


def _cell(line: Mapping[str, Any], name: str) -> str:
    value, spread = line[name], line[f"{name}_spread"]
    if value is None:
        return "-"
    if name == "seconds":
        return f"{value:.1f}"
    return f"{value:.3f}" + ("" if spread is None else f" ({spread:.3f})")


def _verdict(lines: Sequence[Mapping[str, Any]]) -> str:
    """Say whether the first two differ by more than seeds alone do."""
    if len(lines) < 2 or None in (lines[0][_RANKED_BY], lines[1][_RANKED_BY]):
        return "Nothing to compare."
    first, second = lines[:2]
    spreads = (first[f"{_RANKED_BY}_spread"], second[f"{_RANKED_BY}_spread"])
    if None in spreads:
        return "One seed says nothing about chance; give more with --seeds 0,1,2."
    names, gap = (first["loss"], second["loss"]), first[_RANKED_BY] - second[_RANKED_BY]
    if gap <= 2 * float(np.hypot(*spreads)):
        return f"{names[0]} and {names[1]} find errors alike: the seeds alone move them as far."
    return f"{names[0]} finds errors better than {names[1]} by more than the seeds move either."
