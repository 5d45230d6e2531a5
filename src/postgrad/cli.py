"""The command `postgrad`: find the verb, load only that one, say in one line what went wrong.

Nothing but click is imported until a verb is chosen, so `postgrad --help` answers at once and without torch.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module

import click

from postgrad import __version__
from postgrad.run.nearest import nearest
from postgrad.verbs import VERBS
from postgrad.verbs.boundary import Boundary


class _Verbs(click.Group):
    """A group that lists its verbs from a table of text and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), f"{VERBS[cmd_name][0]} is no command"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"unknown verb '{args[0]}': {nearest(args[0], VERBS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


@click.group(
    cls=_Verbs,
    invoke_without_command=True,
    subcommand_metavar="VERB [RECIPE.yaml | ARGUMENTS] [--section.key VALUE]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="postgrad")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn the traces of an LLM application into a better open model, and prove that it is better.

    ingest -> replay -> build -> train -> evaluate -> gate -> promote -> serve -> new traces.
    `postgrad VERB --help` lists a verb's options; `postgrad demo` runs the whole wheel once.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """Entry point of the console script; exit codes are drawn in `postgrad.verbs.boundary`."""
    # transformers tells itself of this one at every training; a user can do nothing about it.
    warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
    with Boundary(as_json="--json" in sys.argv[1:]):
        code = cli.main(prog_name="postgrad", standalone_mode=False)
    raise SystemExit(code if isinstance(code, int) else 0)
