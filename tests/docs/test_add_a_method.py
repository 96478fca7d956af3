"""The page about adding a method quotes a real file, and names things that exist."""

import re
from pathlib import Path

import usimul
from usimul.methods import MODULES
from usimul.testing import LAWS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
QUOTED = "src/usimul/methods/pcomp.py"


def test_the_quoted_code_is_the_file():
    assert f"`{QUOTED}`" in PAGE
    first = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert first[1] == (ROOT / QUOTED).read_text(encoding="utf-8")


def test_the_quoted_file_is_a_registered_method():
    assert Path(QUOTED).stem in MODULES
    registered = {m.name for m in usimul.list_methods() if m.module == "usimul.methods.pcomp"}
    assert registered == {"pcomp-unbiased", "pcomp-relu", "pcomp-abs"}


def test_files_named_on_the_page_exist():
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", PAGE))
    demanding = {"tests/contract/test_references.py", "tests/docs/test_docs.py", "benchmarks/methods.py"}
    assert {QUOTED, *demanding} <= named
    homes = (ROOT, ROOT / "src" / "usimul")
    assert [name for name in named if not any((home / name).exists() for home in homes)] == []
    for name in re.findall(r"`([a-z_]+\.py)`", PAGE):
        assert (ROOT / "src" / "usimul" / "methods" / name).exists(), name


def test_what_the_page_says_of_the_record_holds():
    method = usimul.get_method("pcomp-abs")
    assert method.unbiased == ("",)
    assert method.defined_at_half
    assert any(kind is method.supervision for kind, _ in LAWS)
