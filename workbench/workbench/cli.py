"""The command line. Nothing here imports Textual or torch; commands import what they need when they run."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

# Typer keeps its parser inside: these are the bases of what it raises.
from typer.exceptions import Abort, TyperException

from workbench.commands import audit, bench, collect, config, control, judge_cases, judging, running, sessions, tasks
from workbench.commands import doctor as examining
from workbench.errors import CommandFailed
from workbench_engine.exits import ExitCode
from workbench_sessions.errors import SessionError, SessionFull, SessionUnwritable

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="A terminal workbench that makes kernels fast and believes no number it did not check.",
)
WATCH, STEER, WORK, LOOK = "Run and watch", "Steer a run", "Sessions, tasks, candidates", "This machine"

for command in (running.run, running.demo, running.attach, running.replay):
    app.command(rich_help_panel=WATCH)(command)
for wish in (
    control.accept,
    control.reject,
    control.undo,
    control.pin,
    control.pause,
    control.resume,
    control.stop,
    control.budget,
    control.mode,
    control.submit,
    control.steer,
):
    app.command(rich_help_panel=STEER)(wish)
app.add_typer(sessions.app, name="sessions", rich_help_panel=WORK)
app.command(rich_help_panel=WORK)(sessions.diff)
app.add_typer(tasks.app, name="tasks", rich_help_panel=WORK)
app.command(rich_help_panel=WORK)(judging.evaluate)
app.add_typer(judge_cases.app, name="judge-cases", rich_help_panel=WORK)
app.command(rich_help_panel=WORK)(audit.audit)
app.command(rich_help_panel=WORK)(collect.collect)
app.command(rich_help_panel=LOOK)(examining.doctor)
app.add_typer(config.app, name="config", rich_help_panel=LOOK)
app.add_typer(bench.app, name="bench", rich_help_panel=LOOK)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("kernel-workbench"))
        raise typer.Exit


@app.callback()
def _root(
    debug: bool = typer.Option(False, "--debug", help="Tracebacks instead of one line."),
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="The version."),
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: one line on stderr for whatever goes wrong, and one of `ExitCode`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(status(given, debug="--debug" in given))


def status(arguments: list[str], debug: bool = False) -> int:
    """Runs a command line and returns its exit status."""
    try:
        result = app(arguments, prog_name="workbench", standalone_mode=False)
        return result if isinstance(result, int) else ExitCode.OK
    except CommandFailed as error:
        if debug:
            raise
        return _say(str(error), error.code)
    except SessionError as error:
        if debug:
            raise
        full = isinstance(error, SessionFull | SessionUnwritable)
        return _say(str(error), ExitCode.ENVIRONMENT if full else ExitCode.USAGE)
    except TyperException as error:
        return _say(error.format_message(), ExitCode.USAGE)
    except (KeyboardInterrupt, Abort):
        return _say("interrupted", ExitCode.INTERRUPTED)
    except SystemExit as leaving:
        # How typer ends when whoever read stdout has seen enough: that is no failure.
        if isinstance(leaving.__context__, BrokenPipeError):
            return ExitCode.OK
        raise
    except Exception as error:
        if debug:
            raise
        return _say(f"{type(error).__name__}: {error} (--debug shows where)", ExitCode.FAILED)


def _say(text: str, code: ExitCode) -> int:
    line = " ".join(text.split())
    if line:
        print(f"workbench: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
