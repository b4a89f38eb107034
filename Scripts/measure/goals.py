# SPDX-License-Identifier: Apache-2.0

"""What Baton wants to reach, next to what was measured."""

from dataclasses import dataclass

import race
from statistic import mebibytes, median, milliseconds, table

MEMORY = 64 << 20


@dataclass
class Goal:
    """One of them."""

    work: str
    least: str
    measured: str
    is_met: bool
    #: It does not depend on how fast the machine is and what else it does, and where it is not met the benchmark has
    #: failed.
    is_limit: bool = False


def limit(work: str, least: str, measured: str, is_met: bool) -> Goal:
    """What has to be met on any machine."""
    return Goal(work, least, measured, is_met, is_limit=True)


def faster(work: str, baton: race.Contender, other: race.Contender, least: float) -> Goal:
    """Baton copies so many times as fast, with all data on the disk: its command ends then, those of others before."""
    safe = median(other.safe) / median(baton.safe)
    done = median(other.done) / median(baton.done)
    return Goal(f"{work}, on disk", f"{least} x {other.name}", f"{safe:.2f} (commands: {done:.2f})", safe >= least)


def frugal(work: str, baton: race.Contender, other: race.Contender) -> Goal:
    """Baton takes no more CPU than another."""
    share = median(baton.cpu) / median(other.cpu)
    return Goal(f"CPU, {work}", f"no more than {other.name}", f"{share:.2f} of its", share <= 1)


def filling(work: str, share: float, least: float) -> Goal:
    """Baton has so much of what a link carries."""
    return Goal(work, f"{least:.0%} of the payload rate", f"{share:.1%}", share >= least)


def small(work: str, memory: list[int]) -> Goal:
    """No node holds more memory than may be."""
    most = max(memory)
    return limit(f"memory, {work}", f"under {mebibytes(MEMORY)}", mebibytes(most), most < MEMORY)


def soon(work: str, seconds: list[float], most: float) -> Goal:
    """It takes no longer at the median."""
    middle = median(seconds)
    return Goal(work, f"at most {milliseconds(most)}", milliseconds(middle), middle <= most)


def tell(goals: list[Goal]) -> None:
    """Prints them all."""
    if goals:
        table(
            "What is wanted, and what was measured (on a machine that does nothing else)",
            ["", "wanted", "measured", "reached"],
            [[goal.work, goal.least, goal.measured, "yes" if goal.is_met else "NO"] for goal in goals],
        )
