"""`verb_command`: from a configuration class and a function to a whole command.

Every verb gets the same behaviour from here: a recipe and dotted options, --help with every field, --dry-run, --json,
a run folder that a second call of the same command finds again, --resume, and errors in one line (`boundary`).
A verb whose run folder already holds a complete result still runs: verbs go on in their folder and keep what is done.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

import click

from postgrad.core.canonical import plain_json
from postgrad.core.errors import ConfigError
from postgrad.run.config import Config, load, validate
from postgrad.run.launch import is_first_worker, worker
from postgrad.run.nearest import nearest
from postgrad.run.plain import plain, result_json
from postgrad.run.recipes import find_recipe
from postgrad.run.rundir import RunDir
from postgrad.run.schema import fields_of, is_list
from postgrad.verbs.arguments import Arguments, parse
from postgrad.verbs.boundary import Boundary, stdout_to_stderr
from postgrad.verbs.helping import REST, HelpfulCommand, Topics
from postgrad.verbs.preflight import Known, preflight
from postgrad.verbs.run_folders import difference, started, unfinished

ConfigT = TypeVar("ConfigT", bound=Config)
Result = dict[str, Any]


class VerbOptions(TypedDict, total=False):
    """What a verb may add to the common behaviour.

    help: one or two sentences.
    show: result -> what a person sees (anything that rich prints).
    positional: the field that bare words fill; without it the one bare word is the recipe.
    short: short options, `{"-o": "store"}`.
    exit_code: result -> exit code, for verbs that can say no.
    plan: configuration -> what --dry-run prints beyond the configuration; raises for a plan that cannot work.
    default_run: configuration -> run folder when --run is not given.
    revisable: a run folder may be started again with another configuration (the verb sorts out what to keep).
    recipe_field: the field that gets the folder of the recipe.
    default_recipe: the recipe when none is given.
    recipe_names: what --recipe takes as a value of the field `recipe`, and not as a file.
    keeps_run: False for verbs that only look, which get no run folder and `out` = the current folder.
    rest: the list field that gets the words after `--`, as they are.
    topics: bare words -> sections for --help, and whether they stand in place of the configuration's fields.
    """

    help: str
    show: Callable[[Result], Any] | None
    positional: str | None
    short: Mapping[str, str] | None
    exit_code: Callable[[Result], int] | None
    plan: Callable[[Any], Any] | None
    default_run: Callable[[Any], Path] | None
    revisable: bool
    recipe_field: str
    default_recipe: str
    recipe_names: Sequence[str]
    keeps_run: bool
    rest: str
    topics: Topics


def verb_command(
    name: str, CONFIG: type[ConfigT], run: Callable[[ConfigT, Path], Result], **options: Unpack[VerbOptions]
) -> click.Command:
    """The click command `name`: reads a `CONFIG`, calls `run(config, run_folder)` and shows the result."""
    verb = Verb(name, CONFIG, run, options)
    parameters: list[click.Parameter] = [click.Argument(["tokens"], nargs=-1, type=click.UNPROCESSED)]
    parameters.append(click.Option(["--dry-run"], is_flag=True, help="Print the resolved configuration; run nothing."))
    parameters.append(click.Option(["--json"], is_flag=True, help="One JSON object on stdout, all else on stderr."))
    if options.get("keeps_run", True):
        names = ["--run"] if "-o" in (options.get("short") or {}) else ["--run", "-o"]
        default_run = options.get("default_run")
        place = f"runs/{name}-TIME" if default_run is None else default_run(CONFIG.model_construct())
        parameters.append(click.Option(names, metavar="DIR", help=f"Run folder [{place}]."))
        parameters.append(click.Option(["--resume"], metavar="DIR", help="Go on in this run folder; takes no options."))
    if options.get("positional"):
        named = options.get("recipe_names", ())
        told = ("What to make, or a file" if named else "A file") + " to read the configuration from."
        parameters.append(click.Option(["--recipe"], metavar="|".join([*named, "FILE"]), help=told))
    return HelpfulCommand(
        name,
        CONFIG=CONFIG,
        options=options,
        params=parameters,
        callback=verb.call,
        help=options.get("help", ""),
        context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    )


class Verb:
    """One verb with its options; `call` is what click calls."""

    def __init__(
        self, name: str, CONFIG: type[Config], run: Callable[[Any, Path], Result], options: VerbOptions
    ) -> None:
        self.name, self.CONFIG, self.run, self.options = name, CONFIG, run, options

    def call(
        self,
        tokens: tuple[str, ...],
        dry_run: bool,
        json: bool,
        run: str | None = None,
        resume: str | None = None,
        recipe: str | None = None,
    ) -> None:
        """Parse, resolve, run, show; leaves by `SystemExit`."""
        boundary = Boundary(as_json=json)
        with boundary:
            if resume is not None:
                if tokens or run or recipe:
                    raise ConfigError("--resume takes nothing else", got=shlex.join(tokens), do="leave the rest out")
                config, folder = self._stored(Path(resume)), Path(resume)
            else:
                config = self._configured(tokens, recipe)
                folder = self._folder(config, run)
            preflight(self.name, Known(config.resolved()))
            if dry_run:
                self._print_plan(config, folder, as_json=json)
                return
            boundary.resume = f"postgrad {self.name} --resume {folder}" if self._keeps_run else ""
            result = self._executed(config, folder, as_json=json)
        code = self.options.get("exit_code")
        raise SystemExit(code(result) if code else 0)

    @property
    def _keeps_run(self) -> bool:
        return self.options.get("keeps_run", True)

    def _configured(self, tokens: tuple[str, ...], recipe: str | None) -> Config:
        fields = fields_of(self.CONFIG)
        overrides, words = parse(tokens, fields, self.options.get("short") or {})
        positional = self.options.get("positional")
        if positional is None:
            if len(words) > 1:
                raise ConfigError(f"unexpected argument '{words[1]}'", expected="one recipe and --section.key VALUE")
            recipe = words[0] if words else recipe
        elif words:
            self._fill(positional, Arguments(overrides, words), listed=is_list(fields[positional].annotation))
        recipe = self.options.get("default_recipe") if recipe is None else recipe
        named = self.options.get("recipe_names", ())
        if recipe in named:
            overrides["recipe"], recipe = recipe, None
        elif named and recipe is not None and not (recipe and Path(recipe).expanduser().exists()):
            expected = f"{', '.join(named)}, or a YAML file"
            raise ConfigError("recipe not found", got=recipe, expected=expected, do=nearest(recipe, named))
        file = find_recipe(recipe) if recipe else None
        if file is not None and "recipe_field" in self.options:
            overrides.setdefault(self.options["recipe_field"], str(file.parent.resolve()))
        if positional is None and file is None and not overrides:
            self._require_nothing()
        config = load(self.CONFIG, file, overrides)
        rest = click.get_current_context().meta.get(REST)
        return config if rest is None else config.model_copy(update={self.options["rest"]: rest})

    def _require_nothing(self) -> None:
        """Refuse a bare verb that cannot do without: what its recipe may be is worth more than the key."""
        missing = [name for name, field in self.CONFIG.model_fields.items() if field.is_required()]
        if missing:
            expected = f"a recipe, or {' and '.join(f'--{name}' for name in missing)}"
            do = f"`postgrad {self.name} --help` lists what there is"
            raise ConfigError(f"missing {' and '.join(missing)}", expected=expected, do=do)

    def _fill(self, positional: str, arguments: Arguments, *, listed: bool) -> None:
        overrides, words = arguments
        if positional in overrides:
            raise ConfigError(f"{positional} is given twice", got=f"--{positional} and '{words[0]}'", do="give it once")
        if not listed and len(words) > 1:
            raise ConfigError(f"unexpected argument '{words[1]}'", expected=f"one {positional}")
        overrides[positional] = words if listed else words[0]

    def _stored(self, folder: Path) -> Config:
        before = RunDir(folder).started()
        if before is None:
            raise ConfigError("nothing to resume", got=str(folder), expected="a run folder with a config.json")
        if before[0] != self.name:
            raise ConfigError(f"this run folder belongs to 'postgrad {before[0]}'", got=str(folder))
        return validate(self.CONFIG, before[1], source=str(folder / "config.json"))

    def _folder(self, config: Config, run: str | None) -> Path:
        """--run, or the verb's default, or an unfinished run of the same configuration, or a new folder."""
        default = self.options.get("default_run")
        if not self._keeps_run:
            return Path()
        if run is not None:
            folder = Path(run)
        elif default is not None:
            folder = default(config)
        elif worker()[1] > 1:
            raise ConfigError("several workers must share one run folder", got="no --run", do="give --run DIR")
        else:
            stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
            return unfinished(self.name, config) or Path("runs") / f"{self.name}-{stamp}"
        before = RunDir(folder).started()
        if before is not None and not self.options.get("revisable") and before != (self.name, config.resolved()):
            raise ConfigError(
                f"{folder} holds a run of another configuration ({difference(before, self.name, config)})",
                do="give another --run, or remove the folder",
            )
        return folder

    def _print_plan(self, config: Config, folder: Path, *, as_json: bool) -> None:
        import yaml

        plan = self.options.get("plan")
        told: Result = {"verb": self.name, "config": config.resolved()}
        if self._keeps_run:
            told["run"] = str(folder)
        if plan is not None:
            told["plan"] = plan(config)
        text = plain_json(told) if as_json else yaml.safe_dump(told, sort_keys=False, width=120)
        click.echo(text.rstrip("\n"))

    def _executed(self, config: Config, folder: Path, *, as_json: bool) -> Result:
        diverted = stdout_to_stderr() if as_json else nullcontext(sys.stdout)
        with diverted as stdout, self._run_folder(config, folder) as keep:
            result = self.run(config, folder)
            keep(result)
        if not is_first_worker():
            return result
        if as_json:
            stdout.write(result_json(result, encoding=stdout.encoding or "utf-8") + "\n")
            stdout.flush()
        else:
            self._print(plain(result))
        return result

    @contextmanager
    def _run_folder(self, config: Config, folder: Path) -> Iterator[Callable[[Result], None]]:
        if not self._keeps_run or not is_first_worker():
            yield lambda result: None
            return
        inputs = not self.options.get("revisable")  # a cycle's stages have inputs of their own
        with started(RunDir(folder), self.name, config, inputs=inputs) as keep:
            yield keep

    def _print(self, result: Result) -> None:
        from rich.console import Console

        show = self.options.get("show")
        console = Console(soft_wrap=False)
        if show is not None:
            console.print(show(result), markup=False, highlight=False)
        else:
            console.print_json(data=result)
