"""The project file: read whole, every mistake named, nothing taken silently."""

import tomllib

import pytest

from usimul.project import SECTIONS, project_text, read_project
from usimul.validation import FileFormatError, InputError

GOOD = """
[points]
path = "points.csv"
[supervision]
path = "answers.csv"
asked = 4000
[prior]
value = 0.4
[training]
method = "joint"
image_shape = [1, 28, 28]
options = { mixup = 0.5 }
"""


def write(folder, text):
    file = folder / "usimul.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_values_are_read_and_paths_are_relative_to_the_file(tmp_path):
    project = read_project(write(tmp_path, GOOD))
    assert project.get("points", "path") == tmp_path / "points.csv"
    assert project.get("supervision", "asked") == 4000
    assert project.get("training", "options") == {"mixup": 0.5}
    assert project.get("training", "epochs") is None
    assert project.folder == tmp_path / "run"


def test_a_byte_order_mark_is_no_error(tmp_path):
    file = tmp_path / "usimul.toml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_project(file).get("prior", "value") == 0.4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[training]\nepoch = 3", r"\[training\] epoch is unknown \(did you mean 'epochs'"),
        ("[trainig]\nepochs = 3", r"\[trainig\] is unknown \(did you mean 'training'"),
        ("[points]\nasked = 3", r"asked is unknown; it belongs in \[supervision\]"),
        ("prior = 0.4", "'prior' is a value"),
        ("[prior]\nvalue = '0.4'", "must be a whole number or a number"),
        ("[prior]\nvalue = true", "must be a whole number or a number"),
        ("[prior]\nvalue = 1.4", "value must be a share"),
        ("[prior]\nvalue = 0.4\nestimate = 'auto'\nside = 'minority'", "either given or estimated"),
        ("[prior]\nestimate = 'auto'", "fit p as well as 1 - p"),
        ("[prior]\nestimate = 'magic'\nside = 'minority'", "one of auto, acceptance, likelihood"),
        ("[training]\nepochs = 2.5", "must be a whole number"),
        ("[training]\nepochs = 0", "epochs must be at least 1, and is 0"),
        ("[training]\nlr = 0", "lr must be above 0"),
        ("[training]\nimage_shape = ['a']", "image_shape must be 3 of them"),
        ("[points]\nresize = [28]", "resize must be 2 of them"),
        ("[points]\nignore = [1]", "must be a list of text"),
        ("[supervision]\nwrong_yes = 1.5", "must be a share below 1"),
        ("[supervision]\nwrong_yes = 0.1\n[prior]\nestimate = 'auto'\nside = 'minority'", "State the prior"),
        ("[prior]\nside = 'minority'", "without `estimate`"),
        ("[output]\npredictions = 'x.txt'", "must end in .csv"),
        ("[judging]\nheld_out = 0.9", "between 0 and 0.5"),
        ("[judging]\nlabels = 'x.csv'", "`points` is missing"),
        ("[judging]\npoints = 'x.csv'", "`supervision` or `labels` is missing"),
        ("[judging]\npoints = 'x.csv'\nlabels = 'y.csv'\nheld_out = 0.2", "Drop one of them"),
        ("[output]\npredictions = '../x.csv'", "name of a file"),
    ],
)
def test_mistakes_are_named(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read_project(write(tmp_path, text))


def test_all_mistakes_are_told_at_once(tmp_path):
    with pytest.raises(InputError, match="3 problems"):
        read_project(write(tmp_path, "[training]\nepoch = 3\nmodle = 'mlp'\n[prior]\nvalue = 'x'"))


@pytest.mark.parametrize("content", [b"[points\npath=", b"\xff\xfe\x00", b"[points]\npath = 1\npath = 2"])
def test_what_is_no_toml_is_an_error_that_names_the_file(tmp_path, content):
    file = tmp_path / "usimul.toml"
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"usimul\.toml.*usimul init"):
        read_project(file)


def test_the_commented_file_is_a_project(tmp_path):
    values = {("prior", "value"): "0.3"}
    text = project_text(values)
    project = read_project(write(tmp_path, text))
    assert project.get("prior", "value") == 0.3
    assert project.get("judging", "held_out") == 0.2


def test_every_commented_line_is_in_order_once_its_mark_is_removed(tmp_path):
    """Each example is a value that the file may have; contradicting ones are left out one by one."""
    for section, keys in SECTIONS.items():
        for name, key in keys.items():
            found = tomllib.loads(f"{name} = {key.example}")
            assert isinstance(found[name], key.kinds), (section, name)
            assert not key.choices or found[name] in key.choices


def test_what_is_needed_and_missing_says_how_to_write_it(tmp_path):
    project = read_project(write(tmp_path, "[training]\nepochs = 3"))
    with pytest.raises(InputError, match=r'`path` in \[points\], such as path = "points.csv"'):
        project.need("points", "path")
