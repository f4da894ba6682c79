"""`labelclean benchmark losses`: the speed of every loss beside torch's cross entropy."""

import json
from dataclasses import asdict

import click


@click.command(short_help="Time every loss beside torch's cross entropy.")
@click.option("--batch", type=click.IntRange(min=1), default=4096, show_default=True)
@click.option("--classes", type=click.IntRange(min=2), default=1000, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=15, show_default=True)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Threads for the arithmetic; one is least disturbed by what else the machine does.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the logits.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def command(batch: int, classes: int, rounds: int, threads: int, seed: int, as_json: bool) -> None:
    """Time forward plus backward of every per-sample loss beside torch's cross entropy."""
    import torch

    from labelclean.benchmark.loss_speed import measure_loss_speed

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        rows = measure_loss_speed(batch, classes, rounds, seed)
    finally:
        torch.set_num_threads(before)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    click.echo(
        f"forward + backward, ({batch}, {classes}) float32, {rounds} rounds, threads: {threads}"
    )
    click.echo(f"{'loss':<20} {'ms':>8} {'ratio':>6} {'limit':>6}")
    for row in rows:
        verdict = "" if row.ratio <= row.limit else "  above the limit"
        click.echo(
            f"{row.name:<20} {row.milliseconds:8.1f} {row.ratio:6.2f} {row.limit:6.1f}{verdict}"
        )
