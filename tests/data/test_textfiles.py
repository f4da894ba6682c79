"""CSV and TSV to the letter: types, formulas, and files that are not what they say."""

from pathlib import Path

import pyarrow as pa
import pytest

from labelclean.data.textfiles import ESCAPED, format_text_table, read_text_table
from labelclean.errors import DataError

WHERE = Path("x.csv")


def read(data: bytes, delimiter: str = ",") -> dict[str, list[object]]:
    return read_text_table(WHERE, data, delimiter).to_pydict()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["1", "", "3"], [1, None, 3]),
        (["007", "1", "2"], ["007", "1", "2"]),
        (["-0", "1", "2"], ["-0", "1", "2"]),
        (["+1", "1", "2"], ["+1", "1", "2"]),
        (["9223372036854775807"] * 3, [2**63 - 1] * 3),
        (["9223372036854775808"] * 3, ["9223372036854775808"] * 3),
        (["0.5", "1e-05", "-2.25"], [0.5, 1e-05, -2.25]),
        (["0.50", "1.0", "2.0"], ["0.50", "1.0", "2.0"]),
        (["1", "0.5", "2"], ["1", "0.5", "2"]),
        (["nan", "1.5", "2.5"], None),
        (["nan", "nan", "inf"], ["nan", "nan", "inf"]),
        (["NA", "null", "None"], ["NA", "null", "None"]),
        (["", "", ""], ["", "", ""]),
        ([" 1", "2", "3"], [" 1", "2", "3"]),
        (["true", "false", "true"], ["true", "false", "true"]),
    ],
)
def test_only_text_that_prints_back_becomes_a_number(cells, expected):
    data = "a,b\n" + "".join(f"x,{cell}\n" for cell in cells)
    table = read_text_table(WHERE, data.encode(), ",")
    if expected is not None:
        assert table.to_pydict()["b"] == expected
    again = format_text_table(table, ",", raw=True)
    assert again.decode() == data


def test_bom_crlf_quotes_and_line_breaks():
    data = '\ufeffimage,"la""bel"\r\n"a,b.png","two\r\nlines"\r\n'.encode()
    assert read(data) == {"image": ["a,b.png"], 'la"bel': ["two\r\nlines"]}


def test_a_million_characters_in_one_cell():
    data = f"a,b\n{'x' * 10**6},{'y' * 10**6}\n".encode()
    assert read(data) == {"a": ["x" * 10**6], "b": ["y" * 10**6]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ["empty"]),
        (b"a,b\n", ["no rows"]),
        (b"a,b\n1,2,3\n1\n", ["record 2 has 3 cells", "record 3 has 1 cells", "quotes"]),
        (b'a,b\n"1,2\n', ["record 2"]),
        (b"a,a\n1,2\n", ["'a'", "more than once"]),
        ("a,b\nä,2\n".encode("latin-1"), ["line 2", "0xe4", "UTF-8"]),
        ("a,b\n1,2\n".encode("utf-16"), ["UTF-16", "UTF-8"]),
    ],
)
def test_a_bad_file_is_named_with_the_remedy(data, words):
    with pytest.raises(DataError) as error:
        read(data)
    for word in [*words, "x.csv"]:
        assert word in str(error.value)


def test_risky_text_is_escaped_and_numbers_are_not():
    table = pa.table(
        {
            "=head": ["=1+1", "+a", "-b", "@c", "\td", "\re", "'f", "plain", ""],
            "number": [-1, 2, None, 4, 5, 6, 7, 8, 9],
            "amount": ["-0.50", "+1", "2", "", ".5", "1e-3", "7.", "8", "9"],
        }
    )
    data = format_text_table(table, ",", raw=False)
    lines = data.decode().split("\n")
    assert lines[0] == f"'=head,number,amount,{ESCAPED}"
    assert lines[1] == "'=1+1,-1,-0.50,"
    again = read_text_table(WHERE, data, ",")
    assert again.column(0).to_pylist() == table.column(0).to_pylist()
    assert again.column_names == table.column_names
    for line in lines[1:-1]:
        assert not line.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_harmless_table_gets_no_marker_and_raw_leaves_cells_alone():
    harmless = pa.table({"a": ["x", "y"], "n": [-1, 2]})
    assert ESCAPED not in format_text_table(harmless, ",", raw=False).decode()
    risky = pa.table({"a": ["=1", "y"]})
    assert format_text_table(risky, ",", raw=True) == b"a\n=1\ny\n"


def test_a_file_of_others_keeps_its_quotes():
    assert read(b"a,b\n'=1,'x\n") == {"a": ["'=1"], "b": ["'x"]}


def test_every_cell_of_a_long_table_is_its_own():
    numbers = list(range(1797))
    text = [f"={number}" if number % 3 else "plain" for number in numbers]
    data = format_text_table(pa.table({"label": numbers, "note": text}), ",", raw=False)
    assert ESCAPED in data.decode()
    assert read(data) == {"label": numbers, "note": text}
