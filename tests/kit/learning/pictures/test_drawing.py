"""The heatmap as a figure: every number, every name, one scale."""

import io

from matplotlib.text import Text

from grader.learning.pictures.drawing import curves_figure, figure
from grader.learning.pictures.types import Rows, TracedHeatmap
from grader.tracing import Curves
from tests.kit.support.checkout import run_python

SHARES: Rows = ((1.0, 0.0), (0.25, 0.75))


def heatmap(*panels: Rows) -> TracedHeatmap:
    named = tuple((f"wing {number}", rows) for number, rows in enumerate(panels))
    return TracedHeatmap("Shares $x", named, ("the", "cat"), ("sat", "down"), "looks", "is seen")


def test_every_panel_has_its_title_its_names_and_its_numbers() -> None:
    drawn = figure(heatmap(*[SHARES] * 5))
    plots = [plot for plot in drawn.axes if plot.get_title()]
    assert [plot.get_title() for plot in plots] == [f"wing {number}" for number in range(5)]
    for plot in plots:
        assert (plot.get_ylabel(), plot.get_xlabel()) == ("looks", "is seen")
        assert [label.get_text() for label in plot.get_xticklabels()] == ["sat", "down"]
        assert [label.get_text() for label in plot.get_yticklabels()] == ["the", "cat"]
        assert [text.get_text() for text in plot.texts] == ["100", "0", "25", "75"]
        assert [image.get_clim() for image in plot.images] == [(0, 1)]


def test_numbers_are_black_on_light_cells_and_white_on_dark_ones() -> None:
    plot = figure(heatmap(SHARES)).axes[0]
    assert [text.get_color() for text in plot.texts] == ["black", "white", "white", "black"]


def test_a_dollar_is_a_dollar_and_what_is_no_number_is_left_white() -> None:
    drawn = figure(heatmap(((float("nan"), 2.0), (3.0, float("-inf")))))
    drawn.savefig(io.BytesIO(), format="svg")
    assert [text.get_text() for text in drawn.findobj(Text) if "Shares" in text.get_text()] == [
        r"Shares \$x"
    ]
    assert [text.get_text() for text in drawn.axes[0].texts] == ["nan", "2", "3", "-inf"]


def test_curves_have_their_names_and_their_scales() -> None:
    own = {"own": (2.0, 200.0), "other": (2.0, 20.0)}
    curves = Curves("Growth $x", (1.0, 10.0), own, "n", "bytes", {"n": (1.0, 10.0)})
    drawn = curves_figure(curves)
    plot = drawn.axes[0]
    assert (plot.get_xscale(), plot.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in plot.get_xticklabels()] == ["1", "10"]
    assert [list(line.get_ydata()) for line in plot.lines] == [[2, 200], [2, 20], [1, 10]]
    legend = plot.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["own", "other"]
    assert [text.get_text() for text in plot.texts] == ["n"]
    drawn.savefig(io.BytesIO(), format="svg")


def test_a_narrow_range_has_numbers_too_and_a_long_name_stays_in_the_frame() -> None:
    loss, least = {"own": (3.4, 1.5)}, {"least possible": (1.4, 1.4)}
    drawn = curves_figure(Curves("Loss", (1.0, 10.0), loss, "steps", "loss", least))
    drawn.savefig(io.BytesIO(), format="svg")
    [plot] = drawn.axes
    low, high = plot.get_ylim()
    assert sum(low < tick < high for tick in plot.get_yticks()) > 3
    assert [name.get_horizontalalignment() for name in plot.texts] == ["right"]


def test_pyplot_and_its_global_state_are_not_even_loaded() -> None:
    code = "import sys, grader.learning.pictures.drawing; print('matplotlib.pyplot' in sys.modules)"
    assert run_python("-c", code).stdout == "False\n"
