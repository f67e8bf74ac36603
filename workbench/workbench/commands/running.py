"""run, demo, attach, replay: everything that shows a session."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from workbench.asking import with_model
from workbench.commands.common import Json, NoTui, Trust, configuration, newest_session, session_named
from workbench.config import Config, RunConfig
from workbench.display.choosing import choose
from workbench.display.contract import Shown
from workbench.display.headless import Headless, PlainReporter
from workbench.display.result import outcome_code, print_result
from workbench.engine_process import EngineProcess, code, create_session, leave_timing_core, start_engine
from workbench.errors import CommandFailed, UsageProblem
from workbench.importing.stored import task_file
from workbench.naming import session_path
from workbench.places import Places, private_folder
from workbench.terminal import this_terminal
from workbench_engine.exits import ExitCode
from workbench_engine.settings import RunSettings
from workbench_engine.tasks.contract import TaskRejected
from workbench_sessions.events import Budget
from workbench_sessions.feed import SessionCommandPort, SessionFeed
from workbench_sessions.lock import engine_alive
from workbench_sessions.projection import Projection
from workbench_sessions.store import bundled_sessions

DEMO_TASK = "softmax_rows"
DEMO_MINUTES = 3.0

Policy = Annotated[str | None, typer.Option(help="Who proposes: design-space, best-of-n, random, llm, vllm, manual.")]
Minutes = Annotated[float | None, typer.Option(min=0, help="Budget in minutes; 0 = no limit.")]
Evaluations = Annotated[int | None, typer.Option(min=0, help="Budget in evaluations; 0 = no limit.")]
Seed = Annotated[int | None, typer.Option(help="Seed of policy and search.")]
Name = Annotated[str, typer.Option(help="Name of the session (default: task and time).")]
Wait = Annotated[bool, typer.Option("--wait", help="After the screen is left, wait for the run's end.")]


def run(
    task: Annotated[str, typer.Argument(help="A task's name (`workbench tasks list`) or a task file.")],
    policy: Policy = None,
    minutes: Minutes = None,
    evaluations: Evaluations = None,
    seed: Seed = None,
    case: Annotated[str | None, typer.Option(help="Which timed shapes of the task.")] = None,
    mode: Annotated[str | None, typer.Option(help="auto, or review: candidates wait for your decision.")] = None,
    reward: Annotated[str | None, typer.Option(help="What a policy is paid: workbench or cuda-l1.")] = None,
    islands: Annotated[int | None, typer.Option(min=1, help="Populations that evolve apart.")] = None,
    output_dir: Annotated[str | None, typer.Option("--output-dir", help="Where accepted candidates go.")] = None,
    model: Annotated[str | None, typer.Option(help="The model: a name, with vllm also a folder.")] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Its server, e.g. http://localhost:8000/v1.")
    ] = None,
    key_env: Annotated[str | None, typer.Option("--key-env", help="The variable that holds its key.")] = None,
    answers: Annotated[
        str | None, typer.Option(help="What a model gives: code, or points (of the design space).")
    ] = None,
    recorded: Annotated[
        str | None, typer.Option("--recorded", help="Answer from this session or file instead of a model.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=0, help="Budget in tokens; 0 = no limit.")] = None,
    money: Annotated[float | None, typer.Option(min=0, help="Budget in money, by llm.prices; 0 = no limit.")] = None,
    trust: Trust = None,
    name: Name = "",
    no_tui: NoTui = False,
    json: Json = False,
    wait: Wait = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run and return at once.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="TASK is a session: go on with its run.")] = False,
) -> None:
    """Optimise a task and watch it. The run goes on when the screen is left."""
    flags = {
        "run.policy": policy,
        "run.minutes": minutes,
        "run.evaluations": evaluations,
        "run.seed": seed,
        "run.case": case,
        "run.mode": mode,
        "run.reward": reward,
        "run.islands": islands,
        "run.output_dir": output_dir,
        "run.trust": trust,
        "llm.model": model,
        "llm.base_url": base_url,
        "llm.key_env": key_env,
        "llm.answers": answers,
        "llm.replay": recorded,
        "llm.tokens": tokens,
        "llm.money": money,
    }
    resolved, where = configuration(flags)
    if resume:
        given = [key for key, value in flags.items() if value is not None] + (["name"] if name else [])
        if given:
            raise UsageProblem(f"--resume goes on with the session's own settings; leave out {', '.join(given)}")
        path = session_named(task, where)
    else:
        path = new_session(task, name, resolved.config, where)
    operate(path, resolved.config, where, no_tui=no_tui, as_json=json, wait=wait, detach=detach)


def demo(
    task: Annotated[str, typer.Argument(help="A bundled task.")] = DEMO_TASK,
    minutes: Annotated[float, typer.Option(min=0, help="Budget in minutes.")] = DEMO_MINUTES,
    no_tui: NoTui = False,
    json: Json = False,
    trust: Trust = None,
) -> None:
    """Open on a bundled task and optimise at once."""
    resolved, where = configuration({"run.minutes": minutes, "run.trust": trust})
    path = new_session(task, "", resolved.config, where)
    operate(path, resolved.config, where, no_tui=no_tui, as_json=json)


def attach(
    session: Annotated[str, typer.Argument(help="A session (default: the one that runs, else the newest).")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Start the engine again when the run was cut off.")] = False,
    no_tui: NoTui = False,
    json: Json = False,
) -> None:
    """Come back to a session, from any terminal; several may watch one run."""
    resolved, where = configuration()
    path = session_named(session, where) if session else newest_session(where)
    alive = engine_alive(path)
    if resume and not alive:
        operate(path, resolved.config, where, no_tui=no_tui, as_json=json)
        return
    feed = SessionFeed(path, follow=True)
    if not alive and not feed.projection.header.closed:
        print(f"{path.stem}: its run was cut off; go on with `workbench attach {path.stem} --resume`", file=sys.stderr)
    show(feed, path, resolved.config, where, no_tui=no_tui, as_json=json)
    head = finished(path)
    if json or no_tui or this_terminal().refusal:
        print_result(head, path, json)
        raise typer.Exit(outcome_code(head))


def replay(
    session: Annotated[str, typer.Argument(help="A session (default: a recorded one that ships).")] = "",
    no_tui: NoTui = False,
    json: Json = False,
) -> None:
    """Look at a session from its first event on: play, step, seek. Without a screen: its verdicts and result."""
    resolved, where = configuration()
    path = session_named(session, where) if session else recorded_session()
    headless = no_tui or json or bool(this_terminal().refusal)
    # Without a screen there is nobody to press play: what happened is told at once.
    feed = SessionFeed(path, follow=headless)
    if not headless:
        feed.play()
    show(feed, path, resolved.config, where, no_tui=no_tui, as_json=json, ended=True)
    if headless:
        print_result(finished(path), path, json)


def recorded_session() -> Path:
    """The recorded session that a bare `replay` shows. Raises UsageProblem when none ships."""
    shipped = bundled_sessions()
    if not shipped:
        raise UsageProblem("no recorded session ships with this installation; name one of `workbench sessions list`")
    return shipped[0]


def new_session(task: str, name: str, config: Config, where: Places) -> Path:
    """Creates the session of a new run. Raises UsageProblem, SessionError."""
    settings = with_model(settings_of(task, name, config.run, where), config.llm, vllm=config.vllm)
    path = session_path(private_folder(where.sessions), settings.task, name, time.time())
    create_session(path, settings)
    return path


def settings_of(task: str, name: str, run: RunConfig, where: Places) -> RunSettings:
    """The request of a run. The task's text is taken now, so that a later edit does not change the run.

    Raises UsageProblem.
    """
    try:
        path = task_file(where.tasks, task)
        source = path.read_text(encoding="utf-8")
    except TaskRejected as error:
        raise UsageProblem(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{task}: cannot be read ({error})") from None
    budget = Budget(evaluations=run.evaluations or None, seconds=run.minutes * 60.0 or None)
    try:
        return RunSettings(
            task=task if path.name == "reference.py" and task == path.parent.name else str(path.absolute()),
            source=source,
            path=str(path.absolute()),
            name=name,
            case=run.case,
            policy=run.policy,
            backend=run.backend,
            islands=run.islands,
            group_size=run.group_size,
            seed=run.seed,
            budget=budget,
            mode=run.mode,
            review=run.review,
            reward=run.reward,
            trust=run.trust,
            output_dir=run.output_dir,
            cache_dir=str(where.builds),
            cases=str(where.cases),
            final_threads=run.final_threads,
            in_flight=run.in_flight,
            warm_workers=run.warm_workers,
            confirm=run.confirm,
            judge=run.judge,
        )
    except ValueError as error:
        raise UsageProblem(str(error)) from None


def operate(
    path: Path,
    config: Config,
    where: Places,
    *,
    no_tui: bool,
    as_json: bool,
    wait: bool = False,
    detach: bool = False,
) -> None:
    """Starts the session's engine and shows it to its end. Leaves with the run's exit status."""
    engine = start_engine(path, where.log_of(path))
    if detach:
        print(path)
        return
    feed = SessionFeed(path, follow=True)
    headless = no_tui or as_json or bool(this_terminal().refusal)
    if headless:
        signal.signal(signal.SIGTERM, _interrupt)
    leave_timing_core()
    try:
        show(feed, path, config, where, no_tui=no_tui, as_json=as_json, engine=engine)
        if wait and engine.poll() is None:
            Headless(PlainReporter()).watch(_shown(SessionFeed(path, follow=True), path, engine, False))
    except KeyboardInterrupt:
        print("stopping the run", file=sys.stderr)
        engine.stop()
        print_result(finished(path), path, as_json)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    status = engine.poll()
    if status is None and not (headless or wait):
        name = path.stem
        print(
            f"the run goes on: `workbench attach {name}` comes back, `workbench stop {name}` ends it", file=sys.stderr
        )
        return
    exit_code = code(engine.wait())
    head = finished(path)
    if head.header.outcome == "failed" or (not head.header.closed and exit_code):
        raise CommandFailed(head.header.phase_reason or _last_warning(head) or engine.last_words(), exit_code)
    print_result(head, path, as_json)
    raise typer.Exit(exit_code)


def show(
    feed: SessionFeed,
    path: Path,
    config: Config,
    where: Places,
    *,
    no_tui: bool,
    as_json: bool,
    engine: EngineProcess | None = None,
    ended: bool = False,
) -> None:
    """One display, chosen by the terminal, until the session ends or the person leaves."""
    try:
        choose(this_terminal(), config, where, no_tui or as_json).watch(_shown(feed, path, engine, ended))
    finally:
        feed.close()


def _shown(feed: SessionFeed, path: Path, engine: EngineProcess | None, ended: bool) -> Shown:
    def over() -> bool:
        if engine is not None:
            return engine.poll() is not None
        return ended or not engine_alive(path)

    return Shown(path, feed, SessionCommandPort(path), over)


def finished(path: Path) -> Projection:
    """The state at the session's last event."""
    feed = SessionFeed(path, follow=True)
    try:
        return feed.projection
    finally:
        feed.close()


def _last_warning(p: Projection) -> str:
    return next((line.text for line in reversed(p.log) if line.level in ("warning", "error")), "")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
