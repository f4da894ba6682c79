"""`labelclean benchmark judge`: how good the judge is, with cleanlab in the same run."""

import json
from pathlib import Path
from typing import Any

import click


@click.command("judge")
@click.option(
    "--pred-probs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of .npz files with pred_probs, labels and true_labels.",
)
@click.option(
    "--seed",
    "seeds",
    type=int,
    multiple=True,
    default=(0,),
    show_default=True,
    help="Of all planted noise; may be repeated.",
)
@click.option("--alone", is_flag=True, help="Leave cleanlab out.")
@click.option("--speed", is_flag=True, help="Measure time and memory, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    pred_probs: Path | None,
    seeds: tuple[int, ...],
    alone: bool,
    speed: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure the judge on probability files and on a zoo of synthetic noise."""
    from labelclean.benchmark import judge, judge_speed

    files = None if pred_probs is None else judge.read_files(pred_probs)
    watch = (lambda _: None) if quiet else _dot
    answer = judge.summary(judge.measure_judge(files, seeds, not alone, watch))
    click.echo("", err=True, nl=not quiet)
    timed = judge_speed.measure_judge_speed(against=not alone) if speed else []
    if as_json:
        click.echo(json.dumps(answer | {"speed": timed}))
        return
    _files(answer["files"])
    _zoo(answer)
    if speed:
        _speed(timed)


def _dot(_: str) -> None:
    click.echo(".", err=True, nl=False)


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _files(files: list[dict[str, Any]]) -> None:
    if not files:
        return
    click.echo(
        "| set | method | true noise | estimate | F1 | best F1 | AP | calibration | relabelled "
        "| right |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    names = ("true_noise", "estimate", "f1", "best_f1", "ap", "calibration", "relabelled",
             "relabelled_right")  # fmt: skip
    for row in files:
        numbers = " | ".join(
            "declined" if n == "estimate" and row["declined"] else _number(row[n]) for n in names
        )
        click.echo(f"| {row['case']} | {row['method']} | {numbers} |")


def _zoo(answer: dict[str, Any]) -> None:
    methods = {name: held for name, held in answer.items() if name != "files"}
    click.echo("\n| all sets | " + " | ".join(methods) + " |\n|---|" + "---|" * len(methods))
    for name in ("noisy_sets", "f1", "best_f1", "ap", "noise_error", "declined",
                 "noise_error_answered", "clean_strong_sets", "clean_estimate",
                 "clean_worst", "interval_covers"):  # fmt: skip
        click.echo(f"| {name} | " + " | ".join(f"{m[name]:.4g}" for m in methods.values()) + " |")
    click.echo("\n| group | sets | true | " + " | ".join(
        f"{name} F1 / AP / estimate" for name in methods) + " |\n|---|---|---|"
        + "---|" * len(methods))  # fmt: skip
    first = next(iter(methods.values()))["groups"]
    for group, held in first.items():
        cells = [m["groups"][group] for m in methods.values()]
        text = " | ".join(f"{c['f1']:.3f} / {c['ap']:.3f} / {c['estimate']:.3f}" for c in cells)
        click.echo(f"| {group} | {held['sets']} | {held['true']:.3f} | {text} |")


def _speed(rows: list[dict[str, Any]]) -> None:
    click.echo("\n| rows x classes | labelclean | cleanlab | times faster | extra memory, "
               "labelclean | cleanlab |\n|---|---|---|---|---|---|")  # fmt: skip
    for row in rows:
        click.echo(
            f"| {row['rows']:,} x {row['classes']:,} | {_number(row['seconds'], 2)} s "
            f"| {_number(row['cleanlab_seconds'], 2)} s | {_number(row['times'], 1)} "
            f"| {_number(row['extra_mb'], 0)} MB | {_number(row['cleanlab_extra_mb'], 0)} MB |"
        )
