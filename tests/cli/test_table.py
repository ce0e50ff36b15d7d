from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.table import TableColumn, cut, cut_middle, display_width, fitting_columns, padded, table

COLUMNS = [TableColumn("A", lambda row: row[0]), TableColumn("LONG", lambda row: row[1], is_number=True)]
ROWS = st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=6)


@given(ROWS)
def test_cells_stand_below_their_titles(rows: list[tuple[str, str]]) -> None:
    lines = table(rows, COLUMNS)
    assert len(lines) == len(rows) + 1
    assert len({display_width(line) for line in lines}) == 1
    assert all(line.isprintable() for line in lines)


@given(ROWS, st.integers(1, 60))
def test_a_table_fits_its_terminal(rows: list[tuple[str, str]], width: int) -> None:
    assert all(display_width(line) <= width for line in table(rows, COLUMNS, width=width))


@given(ROWS, st.integers(1, 60), st.integers(1, 20))
def test_columns_that_fit_keep_their_least_widths(rows: list[tuple[str, str]], width: int, least: int) -> None:
    columns = [TableColumn("A", lambda row: row[0], least=least), TableColumn("B", lambda row: row[1], least=least)]
    shown = table(rows, columns, width=width)
    if fitting_columns(columns, width) == len(columns):
        assert "B" in shown[0]


@given(st.text(max_size=30), st.integers(3, 20))
def test_a_text_that_is_cut_in_its_middle_keeps_its_ends(text: str, width: int) -> None:
    shown = cut_middle(text, width)
    assert display_width(shown) <= width
    start, _, end = shown.partition("…")
    assert shown == text or (text.startswith(start) and text.endswith(end))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20), st.integers(1, 20))
def test_a_cut_text_has_at_most_its_width(text: str, width: int) -> None:
    assert display_width(cut(text, width)) <= width
    assert display_width(padded(text, width)) == width


def test_an_optional_column_is_left_out_if_no_row_has_a_value() -> None:
    columns: list[TableColumn[str]] = [
        TableColumn("NAME", str),
        TableColumn("STEP", lambda row: row[1:] or "-", is_optional=True),
    ]
    assert table(["a", "b"], columns) == ["NAME", "a", "b"]
    assert table(["a", "b7"], columns)[0].split() == ["NAME", "STEP"]
    assert table([], columns) == ["NAME"]
