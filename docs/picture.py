"""Draw the README's picture from the recorded session: `python docs/picture.py`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench_screens.app import make_app
from workbench_sessions.feed import SessionCommandPort, SessionFeed
from workbench_sessions.store import bundled_sessions

HERE = Path(__file__).parent


async def main() -> None:
    path = bundled_sessions()[0]
    feed = SessionFeed(path, follow=False)
    feed.seek_seq(int(feed.head_seq * 0.93))
    app = make_app(feed, SessionCommandPort(path), sessions_provider=lambda: [])
    async with app.run_test(size=(150, 40)) as pilot:
        for _ in range(12):
            await pilot.press("j")
        await pilot.pause(0.5)
        (HERE / "population.svg").write_text(app.export_screenshot(title="workbench"))


if __name__ == "__main__":
    asyncio.run(main())
