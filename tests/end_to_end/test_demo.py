"""The demo: its table, its page, and that the page needs nothing from elsewhere."""

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from usimul.cli import main
from usimul.experiments.demo import METHODS, QUICK, run_demo
from usimul.report.charts import Series, line_chart, nice_ticks


class Page(HTMLParser):
    """Collects cells and every attribute that could fetch something, and checks that tags are balanced."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.fetches, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.fetches += [(k, v) for k, v in attrs if k in {"src", "href", "xlink:href", "srcset", "action", "data"}]
        if tag in {"td", "th"}:
            self.cells.append("")
        if tag not in {"meta", "br", "link", "img", "input", "hr"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and {"td", "th"} & set(self.open):
            self.cells[-1] += data


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    page = tmp_path_factory.mktemp("demo") / "page.html"
    result = CliRunner().invoke(main, ["demo", "--quick", "--seed", "1", "--report", str(page)])
    assert result.exit_code == 0, result.output
    return result.stdout, page


def test_table(demo):
    stdout, page = demo
    assert max(map(len, stdout.splitlines())) <= max(80, len(f"Curves and settings: {page}"))
    for method in METHODS:
        line = next(line for line in stdout.splitlines() if line.startswith(f"{method} "))
        accuracy = float(re.search(r" (\d\.\d{3}) ", line).group(1))
        assert 0.0 <= accuracy <= 1.0
        assert re.search(r"\d\.\d{3} \+- \d\.\d{3}", line)
    words = " ".join(stdout.split())
    assert "Both numbers are of the same test points, none of which was trained on" in words
    assert "sums to 1.37 at prior 0.4" in words
    assert "predicts the minority class, here +1, everywhere" in words


def test_page_is_whole_and_self_contained(demo):
    _, path = demo
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open
    assert not page.fetches
    assert not {"script", "link", "iframe", "img"} & set(page.tags)
    assert not re.search(r"https?:|//\w|url\(|@import", text)
    assert page.tags.count("svg") == 1 + len(METHODS)
    for method in METHODS:
        assert any(cell.startswith(method) for cell in page.cells)
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(svg)
    for words in ("prefers-color-scheme: dark", "usimul demo --seed 1 --prior 0.4 --quick", "torch", "epoch"):
        assert words in text
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]


def test_numbers_on_the_page_are_those_of_the_table(demo):
    stdout, path = demo
    shown = re.findall(r'<td class="n">(\d\.\d{3})</td>', path.read_text())
    printed = [
        re.search(r" (\d\.\d{3}) ", line).group(1) for line in stdout.splitlines() if line.split(" ")[0] in METHODS
    ]
    assert shown == printed


def test_the_estimate_and_the_accuracy_are_of_the_same_points(monkeypatch):
    seen = []

    class SeenError(Exception):
        pass

    def stop(clf, X, sup, judging, X_test, y_test, *rest):
        seen.append((X, judging, X_test, y_test))
        raise SeenError

    monkeypatch.setattr("usimul.experiments.demo._train", stop)
    with pytest.raises(SeenError):
        run_demo(sizes=QUICK)
    ((X, judging, X_test, y_test),) = seen
    assert judging.n_points == len(X_test) == len(y_test)
    trained = {row.tobytes() for row in X}
    assert sum(row.tobytes() in trained for row in X_test[judging.rows.ravel()]) == 0
    anchor, first, second = y_test[judging.rows].T
    assert ((anchor == first) | (anchor == second)).all()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--prior", "0.5"], "must differ from 0.5"),
        (["--prior", "2"], "must lie in (0, 1)"),
        (["--seed", "-1"], "`seed` must be at least 0"),
        (["--report", "page.pdf"], "must end in .html"),
    ],
)
def test_bad_input_leaves_no_page(args, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["demo", *args])
    assert result.exit_code == 2
    assert words in result.stderr
    assert not list(tmp_path.iterdir())


def test_chart_escapes_names_and_skips_what_is_not_finite():
    chart = line_chart(
        [Series("<script>&", [1.0, math.nan, 3.0, math.inf])], title='a "title"', x_label="<x>", y_label="y"
    )
    root = ET.fromstring(str(chart))
    (curve,) = root.iter("polyline")
    assert len(curve.get("points").split()) == 2
    assert "<script>" not in chart


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 700.0), (0.2, 0.2000001), (5.0, 5.0), (1e-9, 3e-9)])
def test_ticks_span_the_range(low, high):
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low + 1e-12
    assert ticks[-1] >= high - 1e-12
    assert 2 <= len(ticks) <= 8
