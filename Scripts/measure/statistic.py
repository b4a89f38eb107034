# SPDX-License-Identifier: Apache-2.0

"""Medians, percentiles and tables."""

import math


def median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values: list[float], share: float) -> float:
    """By nearest rank: of 100 values the 99th percentile is the 99th."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share / 100 * len(ordered)) - 1)]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def mebibytes(count: int) -> str:
    return f"{count / 1024**2:.1f} MiB"


def spread(values: list[float]) -> list[str]:
    """Median, 99th percentile, least, greatest and how many, as cells."""
    return [
        milliseconds(median(values)),
        milliseconds(percentile(values, 99)),
        milliseconds(min(values)),
        milliseconds(max(values)),
        str(len(values)),
    ]


SPREAD = ["median", "99 %", "least", "greatest", "of"]


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Prints a table that is Markdown as well."""
    widths = [max(len(row[index]) for row in [header, *rows]) for index in range(len(header))]

    def line(cells: list[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "| " + " | ".join([first, *rest]) + " |"

    print(f"\n{title}\n")
    print(line(header))
    print("| " + " | ".join(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]) + " |")
    for row in rows:
        print(line(row))
    print(flush=True)
