"""`labelclean benchmark`: measure ourselves; one file per target, loaded when it is called."""

import importlib

import click

from labelclean.catalogue import nearest_name

TARGETS = {
    "estimators": "labelclean.cli.benchmark_estimators",
    "judge": "labelclean.cli.benchmark_judge",
    "constants": "labelclean.cli.benchmark_constants",
    "audit": "labelclean.cli.benchmark_audit",
    "evidence": "labelclean.cli.benchmark_evidence",
    "losses": "labelclean.cli.benchmark_losses",
    "engine": "labelclean.cli.benchmark_engine",
    "anomalies": "labelclean.cli.benchmark_anomalies",
    "scan": "labelclean.cli.benchmark_scan",
    "papers": "labelclean.cli.benchmark_papers",
    "strategies": "labelclean.cli.benchmark_strategies",
    "retrieval": "labelclean.cli.benchmark_retrieval",
}


class Targets(click.Group):
    """A group that imports a target's module only when the target is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the targets."""
        return list(TARGETS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one target; an unknown name is answered with the nearest one."""
        if cmd_name not in TARGETS:
            ctx.fail(f"no such target {cmd_name!r}.{nearest_name(cmd_name, TARGETS)}")
        command: click.Command = importlib.import_module(TARGETS[cmd_name]).command
        return command


@click.group(cls=Targets, short_help="Measure labelclean itself.")
def command() -> None:
    """Measure labelclean itself."""
