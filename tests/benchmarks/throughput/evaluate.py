"""The evaluator of OpenEvolve (`evaluate`) and ShinkaEvolve (a program): sleeps, notes that it did, gives a score.

Standard library only: ShinkaEvolve starts a process for every candidate, and imports would be counted as its own cost.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time


def evaluate(program_path: str) -> dict[str, float]:
    """Seconds and the file for the count come from the environment."""
    with open(program_path, encoding="utf-8") as file:  # noqa: PTH123 (pathlib costs a process's start 10 ms)
        text = file.read()
    time.sleep(float(os.environ["THROUGHPUT_EVALUATION_S"]))
    number = max((int(n) for n in re.findall(r"variant = (\d+)", text)), default=0)
    tally(number)
    return {"combined_score": score(number)}


def score(number: int) -> float:
    return 1.0 + number % 97 / 100


def tally(number: int) -> None:
    """One line an evaluation, in one write: processes share the file."""
    descriptor = os.open(os.environ["THROUGHPUT_TALLY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{time.monotonic()} {number}\n".encode())
    os.close(descriptor)


if __name__ == "__main__":
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    found = evaluate(given["--program_path"])
    results = given["--results_dir"]
    for name, content in (("metrics", found), ("correct", {"correct": True, "error": None})):
        with open(f"{results}/{name}.json", "w", encoding="utf-8") as out:  # noqa: PTH123
            json.dump(content, out)
