"""`labelclean benchmark constants`: what a factor of two in each of the judge's constants does."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from labelclean.benchmark.constants import ConstantEffect, ConstantTable, Sensitivity

_BEDS = {
    "probs": "out-of-fold probabilities",
    "answers": "the same after 50 answers of people",
    "blend": "probabilities joined by neighbours",
    "features": "features taken for a backbone's",
    "table": "tables",
}


@click.command("constants")
@click.option(
    "--pred-probs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of .npz files with pred_probs, labels and true_labels, to measure on as well.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all planted noise.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the table to this file."
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(pred_probs: Path | None, seed: int, out: Path | None, quiet: bool) -> None:
    """Halve and double every constant of the judge; print what that does as a table."""
    from labelclean.atomic import write_bytes
    from labelclean.benchmark import constants, judge

    files = None if pred_probs is None else judge.read_files(pred_probs)
    watch = (lambda _: None) if quiet else _dot
    table = constants.measure_constants(constants.make_beds(seed, files), watch)
    click.echo("", err=True, nl=not quiet)
    text = as_markdown(table)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_bytes(out, text.encode())


def _dot(_: str) -> None:
    click.echo(".", err=True, nl=False)


def as_markdown(table: "ConstantTable") -> str:
    """Lay out the beds as they are judged, then every constant with what it does to them."""
    lines = ["| bed | what | sets | AP | error of the noise rate |", "|---|---|---|---|---|"]
    for name, (usual, count) in table.usual.items():
        lines.append(
            f"| {name} | {_BEDS[name]} | {count} | {usual.ap:.4f} | {usual.rate_error:.4f} |"
        )
    lines += [
        "",
        "| constant | value | what it is | where it comes from | chosen on | acts on "
        "| half: AP, rate error | double: AP, rate error |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(one) for one in table.rows),
    ]
    return "\n".join(lines) + "\n"


def _row(one: "Sensitivity") -> str:
    about = one.constant
    return (
        f"| {about.name} | {_value(about.value)} | {about.meaning} | {about.origin.source} "
        f"| {about.origin.chosen_on} | {about.acts_on} | {_effect(one.half)} "
        f"| {_effect(one.double)} |"
    )


def _effect(effect: "ConstantEffect | None") -> str:
    if effect is None:
        return "neither"
    if not effect.ap and not effect.rate_error:
        return f"{_value(effect.value)}: 0, 0"
    return f"{_value(effect.value)}: {effect.ap:+.4f}, {effect.rate_error:+.4f}"


def _value(value: int | float | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{one:g}" for one in value)
    return f"{value:g}"
