"""All cells as one Parquet and one readable table of means and deviations over the seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelclean.atomic import atomic_path, write_bytes
from labelclean.benchmark.papers.grid import Cell
from labelclean.benchmark.papers.store import Store

RESULTS, TABLE = "results.parquet", "table.md"
SECTIONS: dict[str, dict[str, str]] = {
    "Accuracy and fit": {
        "best_accuracy": "best",
        "final_accuracy": "final",
        "best_minus_final": "best - final",
        "noisy_subset": "noisy fit",
        "clean_subset": "clean fit",
        "hybrid": "hybrid",
        "retrain_final_accuracy": "retrained",
        "seconds": "seconds",
        "memory_bytes": "memory",
    },
    "Finding and correcting wrong labels": {
        "true_noise": "wrong",
        "noise_rate_error": "rate error",
        "f1": "F1 of the cut",
        "ap_p_error": "AP p_error",
        "label_accuracy_given": "labels given",
        "label_accuracy_corrected": "corrected",
        "label_accuracy_flagged": "all flagged",
        "label_accuracy_argmax": "argmax",
    },
}
_BY_PREFIX = {"AUROC of every signal": "auroc_", "Rivals on the same features": "against_"}
_FINAL = "final_accuracy"
Found = Sequence[tuple[Cell, dict[str, Any]]]
_Groups = dict[tuple[str, str], list[dict[str, Any]]]


def write_result_tables(store: Store) -> str:
    """Write both from the cells that are finished; give the readable one.

    Args:
        store: The experiment.
    """
    found = store.everything()
    with atomic_path(store.folder / RESULTS) as path:
        pq.write_table(results_table(found), path)
    text = readable(found)
    write_bytes(store.folder / TABLE, text.encode())
    return text


def results_table(found: Found) -> pa.Table:
    """Give one line per cell: what it is, every measure, every curve as a list."""
    measures = sorted({name for _, content in found for name in content["measures"]})
    curves = sorted({name for _, content in found for name in content["curves"]})
    columns: dict[str, pa.Array] = {
        "loss": pa.array([cell.loss for cell, _ in found], pa.string()),
        "noise": pa.array([cell.noise for cell, _ in found], pa.string()),
        "seed": pa.array([cell.seed for cell, _ in found], pa.int64()),
    }
    for name in measures:
        values = [content["measures"].get(name) for _, content in found]
        columns[name] = pa.array(values, pa.float64())
    for name in curves:
        lines = [content["curves"].get(name) for _, content in found]
        columns[f"curve_{name}"] = pa.array(lines, pa.list_(pa.float64()))
    return pa.table(columns)


def readable(found: Found) -> str:
    """Give Markdown tables: a line per noise and loss, mean (standard deviation) over its seeds."""
    groups: _Groups = {}
    for cell, content in found:
        groups.setdefault((cell.noise, cell.loss), []).append(content["measures"])
    measured = sorted({name for _, content in found for name in content["measures"]})
    sections = dict(SECTIONS)
    for title, prefix in _BY_PREFIX.items():
        names = [name for name in measured if name.startswith(prefix)]
        if names:
            sections[title] = {name: name.removeprefix(prefix).replace("_", " ") for name in names}
    parts = [_section(title, names, groups) for title, names in sections.items()]
    return "\n\n".join(parts + _sweeps(groups)) + "\n"


def _sweeps(groups: _Groups) -> list[str]:
    """Show what the settings of a loss do to the final accuracy, as GR table 12 does."""
    settings: dict[str, dict[tuple[str, ...], None]] = {}
    for _, loss in groups:
        name, *texts = loss.split(":")
        settings.setdefault(name, {})[tuple(texts)] = None
    noises = sorted({noise for noise, _ in groups})
    tables = []
    for name, tried in settings.items():
        if len(tried) < 2:
            continue
        keys = list(dict.fromkeys(text.partition("=")[0] for params in tried for text in params))
        lines = [table_line([*keys, *noises]), "|" + "---|" * (len(keys) + len(noises))]
        for params in tried:
            values, loss = dict(text.split("=", 1) for text in params), ":".join([name, *params])
            cells = [
                _cell(_FINAL, [line.get(_FINAL) for line in groups.get((noise, loss), [])])
                for noise in noises
            ]
            lines.append(table_line([*(values.get(key, "default") for key in keys), *cells]))
        tables.append(f"**Settings of {name}, final accuracy**\n\n" + "\n".join(lines))
    return tables


def table_line(cells: Sequence[str]) -> str:
    """Give a line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def _section(title: str, names: dict[str, str], groups: _Groups) -> str:
    shown = [
        name
        for name in names
        if any(line.get(name) is not None for lines in groups.values() for line in lines)
    ]
    heads = ["noise", "loss", "seeds", *(names[name] for name in shown)]
    lines = [table_line(heads), "|" + "---|" * len(heads)]
    for (noise, loss), measured in sorted(groups.items()):
        cells = [_cell(name, [line.get(name) for line in measured]) for name in shown]
        lines.append(table_line([noise, loss, str(len(measured)), *cells]))
    return f"**{title}**\n\n" + "\n".join(lines)


def _cell(name: str, values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if known and name == "memory_bytes":
        return f"{max(known) / 2**20:.0f} MiB"
    if known and name == "seconds":
        return f"{np.mean(known):.0f}"
    return mean_and_deviation(values)


def mean_and_deviation(values: Sequence[float | None]) -> str:
    """Give the mean of what is known and, of more than one, the standard deviation."""
    known = np.array([value for value in values if value is not None])
    if not len(known):
        return "-"
    spread = f" ({known.std(ddof=1):.3f})" if len(known) > 1 else ""
    return f"{known.mean():.3f}{spread}"
