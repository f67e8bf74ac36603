"""Runs ShinkaEvolve, in its own environment: `python run_shinka.py SETTINGS.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from shinka.core import EvolutionConfig, ShinkaEvolveRunner  # type: ignore[import-not-found]
from shinka.database import DatabaseConfig  # type: ignore[import-not-found]
from shinka.launch import LocalJobConfig  # type: ignore[import-not-found]


class Unclamped(ShinkaEvolveRunner):  # type: ignore[misc]
    """As many at once as asked for: the released runner takes at most 1.5 threads a core, idle or not."""

    def _validate_concurrency_settings(self, jobs: int, proposals: int, workers: int, cores: int) -> tuple[int, ...]:
        return jobs, proposals, workers


def main() -> None:
    given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    runner = (ShinkaEvolveRunner if given["clamped"] else Unclamped)(
        evo_config=EvolutionConfig(**given["evolution"]),
        job_config=LocalJobConfig(eval_program_path=given["evaluate"]),
        db_config=DatabaseConfig(**given["database"]),
        **given["runner"],
    )
    runner.run()


if __name__ == "__main__":
    main()
