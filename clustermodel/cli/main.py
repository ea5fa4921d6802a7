"""The ``clustermodel`` command: all commands, the entry point, and exit codes.

Every error a user can cause is one line on standard error and a non-zero exit: 2 for bad input, 1 for output that cannot
be written and for policies that fail, 130 for Ctrl-C.  Results go to standard output, everything else to standard error.
"""

import gc
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from clustermodel.cli.interrupts import INTERRUPTED, exit_code_of, leaving_quietly, one_interrupt
from clustermodel.cli.standard_streams import guarded_streams, log_to_standard_error
from clustermodel.errors import (
    ClusterModelError,
    ExecutionError,
    OutputError,
    PolicyError,
    did_you_mean,
    number_meant,
    shown,
    visible,
)
from clustermodel.experiment.leftovers import end_at_once, end_forks_with_this_process, end_without_waiting
from clustermodel.sim.compiled import is_compiled
from clustermodel.validation import LARGEST_WHOLE

BAD_INPUT: Final = 2
FAILED: Final = 1
COMMANDS: Final = {
    "crossover": ("crossover_command", "Find the value of a parameter at which one policy overtakes another."),
    "init": ("shipped_commands", "Write a small cluster to start from: log, site, policy, study."),
    "policies": ("run_command", "List the policies with their parameters and defaults."),
    "report": ("study_commands", "Write a report of the study in DIRECTORY: one HTML file that opens without a network."),
    "results": ("study_commands", "Print the results of the study in DIRECTORY: means over replications with their 95 % "
                "intervals, and export them."),
    "run": ("run_command", "Simulate policies and print one table, a row per policy."),
    "scenarios": ("shipped_commands", "List the studies of the package, or copy one to a folder."),
    "site": ("site_command", "Make a site file of Slurm's own output: partitions, limits, and the order of the queue."),
    "sweep": ("study_commands", "Run all trials of STUDY and keep their results in a directory."),
    "trace": ("trace_commands", "Look into workload traces, make them from accounting logs, and fit models to them."),
    "validate": ("study_commands", "Compare the formulas of STUDIES with simulated means."),
    "whatif": ("whatif_command", "Compare the waits that a log has recorded with those of simulated policies, machines "
               "and rules on the same jobs."),
}  # fmt: skip
"""Module and first line of each command."""

_NO_NUMBER: Final = re.compile(r"'(.*)' is not a valid (integer|float)( range)?\.")  # a message of click


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage while modules are imported: they leave none, and each collection looks at all of them again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Commands(click.Group):
    """A group that lists its commands by their first lines and imports only the used one: the others would take a second."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, command and remaining arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            with leaving_quietly(), _uncollected():
                # NumPy's wheels start threads for products of large matrices when they are imported.  There are none here.
                os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
                command = getattr(import_module(f"clustermodel.cli.{COMMANDS[str(command.name)][0]}"), str(command.name))
        return name, command, rest


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    package_name="clustermodel", message=f"%(prog)s, version %(version)s, {'compiled' if is_compiled() else 'pure Python'}"
)
@click.option("-v", "--verbose", count=True, help="Say on standard error what is read, run, stored and how long it takes; -vv "
              "also run keys, plug-ins and each run.")  # fmt: skip
@click.pass_context
def cli(context: click.Context, /, verbose: int) -> None:
    """Simulate parallel job scheduling: compare policies on a trace or on a machine that does not exist yet.

    \b
    Start here:
      clustermodel init
          a small cluster to try commands on: a log, rules, a policy, a study
      clustermodel run
          a synthetic year under three policies
      clustermodel trace info KTH-SP2-1996-2.2.swf.gz
          what is in a trace
      clustermodel run --trace KTH-SP2-1996-2.2.swf.gz --policy easy
          policies on a trace
      clustermodel whatif --trace jobs.sacct
          the waits in your own log, and those of policies
      clustermodel crossover --between bf bgs --over context-switch=0:0.1
          up to which value of a parameter one policy is ahead
      clustermodel run kth.toml
          a scenario file
      clustermodel policies
          what can be simulated, with parameters
    """
    context.with_resource(log_to_standard_error(verbose))


for name, (_, first_line) in COMMANDS.items():
    cli.add_command(click.Command(name, help=first_line))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; without ``arguments`` with those of the process, which ends with the command."""
    try:
        with one_interrupt(for_good=arguments is None):
            try:
                with guarded_streams():
                    if arguments is None:
                        end_forks_with_this_process()
                    code = _exit_code(arguments)
            except KeyboardInterrupt as problem:  # while another error was being printed
                code = exit_code_of(problem)
            if arguments is None:
                end_without_waiting(code)
                if code == INTERRUPTED:
                    end_at_once(code)
    except KeyboardInterrupt as problem:  # before the command began
        code = _complain("interrupted", exit_code_of(problem))
    sys.exit(code)


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        try:
            code = cli.main(args=arguments, prog_name="clustermodel", standalone_mode=False)
        except click.exceptions.NoArgsIsHelpError as problem:
            click.echo(problem.format_message())
            code = BAD_INPUT
        if not code:
            sys.stdout.flush()
    except click.ClickException as problem:
        return _complain(_message_of(problem), BAD_INPUT)
    except ClusterModelError as problem:
        return _complain(str(problem), FAILED if isinstance(problem, OutputError | PolicyError | ExecutionError) else BAD_INPUT)
    except (click.Abort, KeyboardInterrupt) as problem:
        return _complain("interrupted", exit_code_of(problem))
    except BrokenPipeError:  # the reader of our output has gone (| head)
        return FAILED
    except SystemExit as end:  # click and rich raise it for the same reason
        return end.code if isinstance(end.code, int) else FAILED
    return code if isinstance(code, int) else 0


def _message_of(problem: click.ClickException) -> str:
    """Return the message of a mistake in the arguments, with what is allowed or was probably meant."""
    message = problem.format_message()
    if isinstance(problem, click.exceptions.NoSuchCommand) and Path(path := problem.command_name).is_file():
        hint = f"clustermodel run --trace {path} simulates a trace, clustermodel trace info {path} shows it"
        return f"{path}: is no command; {hint}"
    if isinstance(problem, click.MissingParameter) and (described := getattr(problem.param, "help", None)):
        return f"{message.rstrip('.')}: {described}"
    if isinstance(problem, click.MissingParameter) and problem.ctx is not None and problem.param is not None:
        name = problem.param.make_metavar(problem.ctx)
        return f"{name} is missing: {problem.ctx.command_path} {name}"
    if isinstance(problem, click.BadParameter) and problem.param is not None:
        return f"{problem.param.opts[0]}: {_allowed(problem.message, problem.param)}"
    return message


def _allowed(message: str, parameter: click.Parameter) -> str:
    """Return what is wrong with the value of a parameter, in the words of the package's own messages."""
    kind = parameter.type
    if match := _NO_NUMBER.fullmatch(message):
        value, number, _ = match.groups()
        message = f"{value!r} is not a {'whole number' if number == 'integer' else 'number'}{number_meant(value)}"
    value, outside, _ = message.partition(" is not in the range ")
    if isinstance(kind, click.IntRange | click.FloatRange) and (outside or match):
        most = "" if kind.max is None else f" and <= {'2^53' if kind.max == LARGEST_WHOLE else f'{kind.max:,}'}"
        must = f"it must be {'>' if kind.min_open else '>='} {kind.min}{most}"
        return f"{shown(value)} is not allowed; {must}" if outside else f"{message}; {must}"
    value, other, _ = message.partition(" is not one of ")
    if isinstance(kind, click.Choice) and other:
        typed = value[1:-1]
        return f"{value} is not allowed{did_you_mean(typed, kind.choices)}; it must be one of {', '.join(kind.choices)}"
    return message.removeprefix(f"{parameter.name}: ")


def _complain(message: str, code: int) -> int:
    click.echo(f"clustermodel: error: {visible(' '.join(message.split()))}", err=True)
    return code
