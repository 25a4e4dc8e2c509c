"""CSV files that are read: nothing moves to another column, and what is damaged is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from automl_plugins.replay.csv_files import read_comparison, read_csv, read_runs
from automl_plugins.statistics import compare


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.csv"


# --- every file -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "task,A,B\nt1,1,2,9\nt2,3,4,9\n",
        "task,A,B\nt1,1,2,9,9\n",
        '"TPE","SMAC"\n"iris",0.1,0.2\n',  # row names of R, whose column has no name
        "TPE,SMAC\n0,0.1,0.2\n1,0.1,0.2\n",  # pandas would number the rows by them
    ],
)
def test_rows_with_more_fields_than_the_header_are_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=r"some.csv has rows with more fields .* col.names=NA"):
        read_csv(path)
    with pytest.raises(ValueError, match="more fields"):
        read_comparison([str(path)])


def test_a_comma_at_the_end_of_each_row_is_no_field(path: Path) -> None:
    path.write_text("task,A,B\nt1,1,2,\nt2,3,4,\n")
    frame = read_comparison([str(path)])
    assert frame.to_dict("index") == {"t1": {"A": 1, "B": 2}, "t2": {"A": 3, "B": 4}}


@pytest.mark.parametrize("text", ["task;A;B\nt1;0,5;0,25\n", "task\tA\nt1\t0,5\n"])
def test_other_separators_are_told(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=r"comma-separated values: its one column is 'task.*A"):
        read_csv(path)


def test_another_encoding_is_told(path: Path) -> None:
    path.write_bytes("task,ä\nt,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="no table of comma-separated values in UTF-8: 'utf-8'"):
        read_csv(path)


def test_a_later_row_with_more_fields_is_one_line(path: Path) -> None:
    path.write_text("task,A,B\nt1,1,2\nt2,3,4,9\n")
    with pytest.raises(ValueError, match=r"^.*some.csv is no table .* line 3, saw 4\.$"):
        read_csv(path)


@pytest.mark.parametrize("cut", [slice(-9), slice(40), slice(12)])
def test_a_damaged_compressed_file_is_one_line(path: Path, cut: slice) -> None:
    whole = gzip.compress("\n".join(["task,A", *(f"t{i},{i}" for i in range(99))]).encode())
    path = path.with_name("some.csv.gz")
    path.write_bytes(whole[cut])
    with pytest.raises(ValueError, match=r"^.*some.csv.gz is no table of .*\.$"):
        read_csv(path)
    path.write_bytes(whole[:40] + bytes(20) + whole[60:])
    with pytest.raises(ValueError, match=r"^.*some.csv.gz is no table of .*\.$"):
        read_csv(path)
    path.write_bytes(b"task,A\nt,1\n")
    with pytest.raises(ValueError, match="Not a gzipped file"):
        read_csv(path)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("comments", ["", "# by me\n", "# by me\n# twice\n"])
def test_comments_may_follow_a_byte_order_mark(path: Path, mark: str, comments: str) -> None:
    path.write_text(f"{mark}{comments}task,A\n#1,2\n", encoding="utf-8")
    assert read_csv(path).to_dict("list") == {"task": ["#1"], "A": [2]}


def test_spaces_after_the_commas_of_the_header(path: Path) -> None:
    path.write_text('table, method, "seed", trial, loss\nt, A, 0, 1, 0.5\nt, B, 0, 1,0.7\n')
    frame = read_comparison([str(path)])
    assert frame["method"].tolist() == ["A", "B"] and frame["loss"].tolist() == [0.5, 0.7]
    path.write_text("task,A, A\nt,1,2\n")
    with pytest.raises(ValueError, match="more than one column A"):
        read_csv(path)
    path.write_text("task,A\nt, B\n")  # as replay may have written it
    assert read_csv(path)["A"].tolist() == [" B"]


# --- scores -----------------------------------------------------------------------------------


def test_tasks_are_called_as_they_are_written(path: Path) -> None:
    names = ["NA", "None", "nan", "01", "1", ""]
    path.write_text("\n".join(["task,A,B", *(f"{name},0.5,NA" for name in names)]))
    frame = read_comparison([str(path)])
    assert frame.index.tolist() == names
    assert (frame["A"] == 0.5).all() and frame["B"].isna().all()
    path.write_text(",A\nNA,1\n01,2\n")  # as R and pandas write row names
    assert read_comparison([str(path)])["A"].to_dict() == {"NA": 1, "01": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,A,A,B\nt1,1,5,2\n", "some.csv has more than one column A"),
        ("task,A,,B\nt1,1,5,2\n", "the header has no name for column 3"),
        ("task,A,B,\nt1,1,5,\n", "the header has no name for column 4"),
        ("task,A\nt1,x\n", "not numeric: A. .* the columns table, method, seed, trial and loss"),
        ("set,algo,error\nt1,x,1\n", "numeric: algo. A file of scores has a row for each task"),
        ("task,A\n", "some.csv has no rows"),
    ],
)
def test_what_are_no_scores_is_told(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_comparison([str(path)])


# --- runs -------------------------------------------------------------------------------------

HEADER = "table,method,seed,trial,loss"


@pytest.mark.parametrize("gap", ["", "nan", "NaN", "NA"])
def test_a_loss_that_is_missing_may_be_written_in_any_way(path: Path, gap: str) -> None:
    path.write_text(f"{HEADER}\nNA,nan,0,1,{gap}\nNA,A,0,1,0.5\n")
    frame = read_comparison([str(path)])
    assert frame["loss"].isna().tolist() == [True, False]
    assert frame["table"].tolist() == ["NA", "NA"] and frame["method"].tolist() == ["nan", "A"]
    assert compare(frame).ranks.to_dict() == {"A": 1.0, "nan": 2.0}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",A,0,2,0.5", "the column table is empty in 1 row."),
        ("t,,0,2,0.5", "the column method is empty in 1 row."),
        ("t,A,,2,0.5", "the column seed is empty in 1 row."),
    ],
)
def test_runs_without_a_name_are_refused(path: Path, row: str, message: str) -> None:
    path.write_text(f"{HEADER}\nt,A,0,1,0.5\n{row}\n")
    with pytest.raises(ValueError, match=message):
        read_comparison([str(path)])


def test_a_column_of_runs_that_is_missing_is_named(path: Path) -> None:
    path.write_text("dataset,method,seed,trial,loss\n1,2,0,1,0.5\n")  # numbers, as scores are
    with pytest.raises(ValueError, match="no column table: a file of runs has the columns table,"):
        read_comparison([str(path)])
    path.write_text("table,method,seed,trial,loss,loss\nt,A,0,1,0.5,0.6\n")
    with pytest.raises(ValueError, match="more than one column loss"):
        read_runs(path)
