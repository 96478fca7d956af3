"""The built wheel, alone in a folder: the quick start by real commands, as a new user types them."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds what the wheel holds, and nothing of the checkout."""
    if importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("build") is None:
        pytest.skip("hatchling and build make the wheel: pip install 'usimul[dev]'")
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT], folder)
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, wheel], folder)
    return target


def run(words, folder, **environment):
    result = subprocess.run(
        [os.fspath(word) for word in words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, (words, result.stdout, result.stderr)
    return result.stdout


def example(text):
    """The statements of an example without its prompts."""
    return "\n".join(line[4:] for line in text.splitlines() if line.startswith((">>> ", "... ")))


def test_the_quick_start_from_the_wheel(installed, tmp_path):
    """The examples that make the files in one program, then the commands, one process each."""
    environment = {"PYTHONPATH": os.fspath(installed), "OMP_NUM_THREADS": "1"}
    where = run([sys.executable, "-c", "import usimul; print(usimul.__file__)"], tmp_path, **environment)
    assert Path(where.strip()).is_relative_to(installed)
    found = BLOCK.findall(PAGE)
    program = tmp_path / "make_files.py"
    program.write_text("\n".join(example(text) for kind, text in found if kind == "python"), encoding="utf-8")
    run([sys.executable, program], tmp_path, **environment)
    lines = [line for kind, text in found if kind == "sh" for line in text.splitlines()]
    assert len(lines) == 4
    for line in lines:
        words = line.split()
        assert words[0] == "usimul"
        run([installed / "bin" / "usimul", *words[1:]], tmp_path, **environment)
    for name in ("run", "digits_run"):
        made = {path.name for path in (tmp_path / name).iterdir()}
        assert {"report.html", "predictions.csv", "evaluation.json", "model", "log.txt"} <= made
        assert (tmp_path / name / "report.html").read_text(encoding="utf-8").count("<svg") >= 3
    assert "data:image/png" in (tmp_path / "digits_run" / "report.html").read_text(encoding="utf-8")
