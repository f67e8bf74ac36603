"""What an installation gets: hatchling drops what .gitignore names, so look into the wheel itself."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("workbench/workbench", "screens/workbench_screens", "engine/workbench_engine", "sessions/workbench_sessions")


def test_the_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    for room in ROOMS:
        package = ROOT / room
        assert f"{package.name}/py.typed" in held
        for file in package.rglob("*"):
            if file.is_file() and file.suffix in (".py", ".tcss", ".wb", ".typed"):
                assert str(file.relative_to(package.parent)) in held
    assert any(name.endswith(".tcss") for name in held)
    assert "workbench_engine/tasks/bundled/softmax_rows/reference.py" in held
    assert not any(name.startswith("tests/") for name in held)
