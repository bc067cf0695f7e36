"""`python -m tests.planted`: every mistake is planted, and its test must fail.

A row for each, and a table for the documentation with `--out`; exit code 1 if one is not seen.
"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.planted.judge import judge, load_libraries
from tests.planted.mistake import MISTAKES


def main():
    """Plant what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("names", nargs="*", help="of mistakes; all, if none is named")
    parser.add_argument(
        "--sample", action="store_true", help="the quick ones of `make test-all`"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="where the table goes, in Markdown")
    asked = parser.parse_args()
    every = {mistake.name: mistake for mistake in MISTAKES}
    names = asked.names or [m.name for m in MISTAKES if m.quick or not asked.sample]
    if other := [name for name in names if name not in every]:
        parser.error(f"no such mistake: {other}")
    mistakes = [every[name] for name in names]
    load_libraries()
    verdicts = []
    with ThreadPoolExecutor(asked.workers) as threads:  # each waits for a process
        for mistake, verdict in zip(mistakes, threads.map(judge, mistakes), strict=True):
            verdicts.append(verdict)
            print("✓" if verdict.caught else "✗", row(mistake, verdict), flush=True)
    for mistake, verdict in zip(mistakes, verdicts, strict=True):
        if not verdict.caught:
            print(
                f"\n{mistake.test} does not judge it wrong that {mistake.why}:\n{verdict.text}"
            )
    caught = sum(verdict.caught for verdict in verdicts)
    print(f"\n{caught} of {len(verdicts)} planted mistakes are seen.")
    if asked.out:
        asked.out.write_text(table(mistakes, verdicts), encoding="utf-8")
    sys.exit(caught < len(verdicts))


def row(mistake, verdict):
    """Name, package, what is wrong, by what it is caught, and in how many seconds."""
    number = "" if mistake.number is None else str(mistake.number)
    cells = [mistake.name, mistake.where, mistake.by, number, mistake.why, f"`{mistake.test}`"]
    return " | ".join([*cells, f"{verdict.seconds:.0f}" if verdict.caught else "not"])


def table(mistakes, verdicts):
    """All rows, in Markdown; a table has no bars in it."""
    heads = ["mistake", "planted in", "tests", "class", "what is wrong", "caught by", "seconds"]
    lines = [" | ".join(heads), " | ".join(["---"] * (len(heads) - 1) + ["---:"])]
    pairs = sorted(zip(mistakes, verdicts, strict=True), key=lambda pair: pair[0].where)
    lines += [row(*pair) for pair in pairs]
    return "".join(f"| {line} |\n" for line in lines)


if __name__ == "__main__":
    main()
