"""Measure every case and print the table, in about four minutes: `make bench`."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.cases import CASES
from benchmarks.memory import peaks
from benchmarks.timing import Result

LIBRARIES = ("torch", "numpy", "llvmlite", "scipy", "lapx", "sentence-transformers", "maxsim-cpu")


def main() -> None:
    given = _arguments()
    results: list[Result] = []
    for case in CASES:
        if case.__name__ in given.cases:
            for result in case():
                print(f"{result.case}, {result.setting}: {result.ratio:.3g}", file=sys.stderr)
                results.append(result)
    measured = "memory" in given.cases and sys.platform == "linux"
    memory = list(peaks()) if measured else []
    console = Console()
    console.print(_speed_table(results))
    if memory:
        console.print(_memory_table(memory))
    record = {
        "machine": machine(),
        "results": [each.record() for each in results],
        "memory": memory,
    }
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"saved to {given.output}")


def machine() -> dict[str, object]:
    """What the numbers depend on."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": llvm.get_host_cpu_name(),
        "threads": torch.get_num_threads(),
        "versions": {name: version(name) for name in LIBRARIES},
    }


def _arguments() -> argparse.Namespace:
    names = [*(case.__name__ for case in CASES), "memory"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(names)}")
    parser.add_argument("--output", type=Path, default=Path("build/bench.json"))
    given = parser.parse_args()
    for name in given.cases:
        if name not in names:
            parser.error(f"there is no case {name!r}; choose of {', '.join(names)}")
    given.cases = given.cases or names
    return given


def _speed_table(results: Sequence[Result]) -> Table:
    facts = machine()
    title = f"ours / peer, medians; {facts['processor']}, {facts['threads']} threads"
    table = Table(title=title, title_justify="left")
    for name in ("case", "setting", "ours ms", "fastest peer", "peer ms", "ratio", "goal"):
        table.add_column(name, justify="right" if name in {"ours ms", "peer ms"} else "left")
    for each in results:
        ours, theirs = next(iter(each.seconds.values())), each.seconds[each.peer]
        times = f"{1e3 * ours:.2f}", f"{1e3 * theirs:.2f}"
        ratio = f"{each.ratio:.3f}" if each.ratio >= 0.1 else f"1/{1 / each.ratio:.0f}"
        table.add_row(each.case, each.setting, times[0], each.peer, times[1], ratio, each.goal)
    return table


def _memory_table(memory: Sequence[dict[str, object]]) -> Table:
    table = Table(title="f peak memory beyond the inputs", title_justify="left")
    table.add_column("work")
    table.add_column("MB", justify="right")
    for each in memory:
        table.add_row(str(each["work"]), f"{each['megabytes']:.0f}")
    return table


if __name__ == "__main__":
    main()
