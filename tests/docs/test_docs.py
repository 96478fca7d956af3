"""The pages: every example runs, every command exists, every public name is explained."""

import dataclasses
import doctest
import inspect
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import usimul
from usimul.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN_ONLY = {"reproduce.md", "table-sets.md"}  # pages whose command lines take long or need files
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PUBLIC = [
    "ComparedPairs",
    "ConfidenceDifference",
    "DissimilarPairs",
    "Labels",
    "SimilarPairs",
    "SimilarityConfidence",
    "Triplets",
    "USimULClassifier",
    "Unlabeled",
    "WeakClassifier",
    "estimate_prior",
    "get_method",
    "list_methods",
    "load",
    "load_dataset",
    "make_gaussians",
    "sample_labels",
    "sample_triplets",
    "save",
]


def blocks(page):
    """Language, text and line of every example."""
    text = page.read_text(encoding="utf-8")
    return [(found[1], found[2], text.count("\n", 0, found.start(2))) for found in BLOCK.finditer(text)]


def commands(text):
    """The ``usimul`` lines of a shell example, as arguments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("usimul ")]


def all_commands():
    return [
        (page.name, args) for page in PAGES for kind, text, _ in blocks(page) if kind == "sh" for args in commands(text)
    ]


def inline_commands():
    r"""What stands between backticks, such as ``usimul methods NAME``."""
    pattern = re.compile(r"`usimul ([^`\n]+)`")
    return sorted({(page.name, found) for page in PAGES for found in pattern.findall(page.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    """In the order of the page and in one empty folder; the README's Python also runs as a doctest of its own."""
    monkeypatch.chdir(tmp_path)
    names, problems = {}, []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)  # None reads -v from sys.argv
    for kind, text, line in blocks(page):
        if kind == "sh":
            for args in [] if page.name in SHOWN_ONLY else commands(text):
                result = CliRunner().invoke(main, args)
                assert result.exit_code == 0, (args, result.output)
        elif page.name != "README.md":
            test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
            runner.run(test, out=problems.append, clear_globs=False)
            names = test.globs
    assert not problems, "".join(problems)


def test_every_python_block_is_an_example():
    for page in PAGES:
        for kind, text, line in blocks(page):
            assert kind == "sh" or ">>> " in text, f"{page.name}, line {line + 1}: nothing here runs"


@pytest.mark.parametrize(
    ("page", "args"), all_commands(), ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_command_lines_name_real_commands_and_options(page, args):
    command, rest = find(args)
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in rest:
        if word.startswith("-") and not re.fullmatch(r"-\d.*", word):
            assert word.split("=")[0] in options, f"{page}: {word} of usimul {' '.join(args)}"


@pytest.mark.parametrize(("page", "line"), inline_commands())
def test_commands_within_sentences_exist(page, line):
    words = line.split()
    words = words[2:] if words[0] == "--project" else words
    assert words[0] in COMMANDS or words[0] in {"--help", "--version"}, f"{page}: usimul {line}"


def find(args):
    """The command, or command of a group, that a line calls, and the words after its name."""
    context = click.Context(main)
    if args[0] == "--project":
        args = args[2:]
    command = main.get_command(context, args[0])
    assert command is not None, args
    args = args[1:]
    if isinstance(command, click.Group) and args and command.get_command(context, args[0]):
        return command.get_command(context, args[0]), args[1:]
    return command, args


def test_public_names_are_these():
    assert usimul.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_explained_with_an_example(name):
    found = getattr(usimul, name)
    doc = inspect.getdoc(found)
    assert doc
    assert ">>> " in doc or dataclasses.is_dataclass(found)
    for part in () if dataclasses.is_dataclass(found) or not inspect.isclass(found) else dir(found):
        if not part.startswith("_") and getattr(found, part).__module__.startswith("usimul"):
            assert inspect.getdoc(getattr(found, part)), f"{name}.{part}"


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_know_every_method():
    """The table of the README names every method, by itself or by its family."""
    named = re.findall(r"`([a-z][a-z*-]+)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    patterns = [re.compile(re.escape(name).replace(r"\*", ".*")) for name in named]
    for method in usimul.list_methods():
        known = any(pattern.fullmatch(method.name) for pattern in patterns)
        assert known, f"add {method.name!r}, or its family, to the table of methods in README.md"
