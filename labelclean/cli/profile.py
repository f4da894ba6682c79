"""Where the time of a run went, as a table."""

from collections.abc import Mapping

from labelclean.options import TOTAL, Clock


def profile_text(timings: Mapping[str, float], clock: Clock, rows: int) -> str:
    """Show what every phase took: seconds by the clock and of all cores, and what was held.

    Args:
        timings: Seconds by phase, and the total, as in run.json.
        clock: What counted them.
        rows: How many rows were audited.
    """
    total, worked = timings[TOTAL], {**clock.worked, TOTAL: sum(clock.worked.values())}
    lines = [f"{'phase':<14}{'seconds':>9}{'share':>8}{'cpu s':>9}{'rows/s':>12}{'peak MB':>9}"]
    for name, seconds in timings.items():
        share = seconds / total if total else 0.0
        pace = f"{rows / seconds:,.0f}" if seconds > 0 else "-"
        peak = clock.memory.get(name)
        held = "" if peak is None else f"{peak / 2**20:,.0f}"
        spent = f"{worked.get(name, 0.0):.2f}"
        lines.append(f"{name:<14}{seconds:>9.2f}{share:>8.1%}{spent:>9}{pace:>12}{held:>9}")
    return "\n".join(lines)
