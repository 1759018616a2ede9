"""The commands and their options. Importing this module is fast; a command imports its function when it runs."""

from __future__ import annotations

import click

from isopleth.cli.command import Command
from isopleth.cli.options import (
    DENSITY_SIZE,
    MIXED_SIZE,
    MOST_FLAGGED,
    PATH,
    ColumnList,
    Number,
    WholeNumber,
    confidence_option,
    file_option,
    given_option,
    ignore_missing_option,
    json_option,
    law_size_option,
    raw_text_option,
    report_option,
    row_numbers_option,
    size_option,
    table_options,
)
from isopleth.cli.program import program as program


@click.command(
    cls=Command,
    stages="reading fitting scoring explaining writing",
    short_help="Show the least likely rows of a table.",
    reads={"file": "files", "reference": "file", "model": "model file"},
)
@click.argument("file", type=PATH)
@file_option(
    "--out",
    "Write line (or row), score, pvalue, label (1: flagged) and certain (1: selected by --fdr) of every row, and with "
    "--reference at_least (of the rows up to this one, so many are anomalies); .csv or .parquet.",
)
@click.option(
    "--contamination",
    type=Number(0, 0.5, min_open=True),
    help="Flag this share of the rows of FILE, or of the reference.  [default: rows as unlikely as the least likely 1/30 of "
    "ordinary rows]",
)
@click.option(
    "--fdr",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="Mark rows as certain at this false discovery rate.",
)
@file_option("--reference", "Judge the rows of FILE by this table, whose rows are known to be ordinary.")
@table_options("--columns", "Use these columns only.", bad_cells="missing")
@click.option("--top", type=WholeNumber(min=0), default=10, show_default=True, help="Number of rows to show.")
@file_option("--save", "save_to", "Keep the fitted model in this file.", metavar="MODEL")
@file_option("--model", "Score the rows with this model instead of fitting one.", metavar="MODEL")
@file_option("--plot", "Draw the anomalies; .png, .svg or .pdf.")
@click.option(
    "--explain",
    is_flag=True,
    help="Say for the rows shown which columns make them unlikely; --out says it for flagged rows too, in columns "
    f"explained_by, usual and excess (at most {MOST_FLAGGED:,}).",
)
@row_numbers_option
@raw_text_option
@report_option
@json_option
def anomalies() -> None:
    """Show the least likely rows of FILE, a table (isopleth --help lists the formats).

    FILE may be a quoted pattern for many files, as in 'folder/*.parquet'. These, and large files, are read in parts.

    The table may have words, times and missing cells; a line on standard error says what its columns were taken as.

    Each row is judged by the other rows of FILE. With --reference, the rows are judged by the rows of that table, which are
    known to be ordinary, and with --model by those that the model was fitted on.
    """


@click.command(
    cls=Command,
    stages="reading fitting judging writing",
    short_help="Show which cells of a table are wrong.",
    reads={"file": "files"},
)
@click.argument("file", type=PATH)
@file_option(
    "--out",
    "Write the worst cell of every row: line (or row), column, value, usual, low, high, excess, flagged, repairable and against; "
    ".csv or .parquet.",
)
@file_option(
    "--repaired",
    "Write FILE with flagged cells replaced where it is clear enough what they should hold; all others, and columns that are "
    "not used, as they stand.",
)
@file_option(
    "--changes",
    "Write the cells that --repaired replaces: line (or row), column, old, new and reason; .csv or .parquet.",
)
@file_option(
    "--rules",
    "Write the rules that nearly all rows keep to this file, or judge by those of the file if it is there.",
    metavar="JSON",
)
@click.option(
    "--threshold",
    type=Number(0),
    help="Flag cells beyond so many nats.  [default: at least 4.5 for numbers, by the tails of the table; 3.5 to 7 for words]",
)
@table_options("--columns", "Use these columns only.", bad_cells="missing")
@click.option("--top", type=WholeNumber(min=0), default=10, show_default=True, help="Number of rows to show.")
@file_option("--save", "save_to", "Keep the fitted model in this file.", metavar="MODEL")
@file_option("--plot", "Draw the worst cells; .png, .svg or .pdf.")
@row_numbers_option
@raw_text_option
@report_option
@json_option
def cells() -> None:
    """Show the cells of FILE that do not fit the other cells of their rows, and what would be usual there.

    Each cell is judged by its law given the other cells of its row, and by rules that nearly all rows keep: sums and products
    of columns, orders such as delivered >= ordered, words that tell other words, signs, whole numbers, usual words. Cells that
    cannot be read come first. Which rows are unusual is another question: isopleth anomalies.
    """


@click.command(
    cls=Command, stages="reading searching writing", short_help="Show where a series changes.", reads={"file": "file"}
)
@click.argument("file", type=PATH)
@table_options("--column", "Use this column, or several as one series of vectors.")
@click.option(
    "--time",
    metavar="COLUMN",
    help="Column with the times of the rows, in ascending order.  [default: the only column of dates or times, if there is one]",
)
@click.option(
    "--timezone",
    metavar="ZONE",
    help="Zone on whose clock times are shown, such as Europe/Berlin, and that days and weeks follow; times without a zone are "
    "in UTC then.  [default: the offsets in the file]",
)
@click.option(
    "--given",
    type=ColumnList(),
    help="Judge the series given these columns at the same step, such as requests: counts as rates per request, others by what "
    "does not follow from them.",
)
@click.option(
    "--period",
    metavar="P,...",
    default="auto",
    show_default=True,
    help="Periods of the seasons: numbers of steps, day, week, month, year; or none.",
)
@click.option(
    "--false-alarm-rate",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability with which a series without a change may show one.",
)
@file_option(
    "--out", "Write line (or row), time, segment and change (what changed, or nothing) of every row; .csv or .parquet."
)
@file_option("--plot", "Draw the series and its changes; .png, .svg or .pdf.")
@row_numbers_option
@report_option
@json_option
def changes() -> None:
    """Show where the series in FILE changes: a table with one row a step (isopleth --help lists the formats).

    Days, weeks and other seasons are taken out; --period none leaves them in. Of a running total, the increments are judged. The
    exit code is 0 whether there is a change or not; a script reads the number of "changes" in --json.
    """


@click.command(
    cls=Command,
    stages="reading testing describing writing",
    short_help="Test whether two tables differ, and show where.",
    reads={"a": "files", "b": "files"},
)
@click.argument("a", type=PATH)
@click.argument("b", type=PATH, required=False)
@click.option(
    "--split",
    metavar="COL[=A[,B]]|COL@VALUE",
    help="Compare two parts of table A: its rows with entry A and with entry B (or all others) of a column, or its rows below "
    "and from a number or time on; COL@median divides it in halves.",
)
@table_options("--columns", "Use these columns only.")
@ignore_missing_option
@click.option(
    "--groups",
    metavar="COL[@day|week|month]",
    help="Rows with the same entry in this column, such as a patient, belong together; of a column of times, those of one day, "
    "week or month.",
)
@click.option(
    "--keep-times", is_flag=True, help="Compare columns of times even if one table has only later times than the other."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    help="Say which columns are shown to differ in more than this share of their values, and which are not.",
)
@click.option(
    "--target",
    metavar="COL[=WORD]",
    help="Say how far the mean of this column, or the share of a word in it, moved among rows that are alike in the others, "
    "in its units and in percent.",
)
@click.option(
    "--given", type=ColumnList(), help="With --target: the columns in which rows are to be alike.  [default: all]"
)
@click.option(
    "--by",
    metavar="COL",
    help="Say in which groups of this column another one changed, however small the change of all rows is; with --target how far "
    "that moved in each group.",
)
@file_option("--out", "Write file, part, line (or row) and fitted difference of every row; .csv or .parquet.")
@file_option("--plot", "Draw columns and rows; .png, .svg or .pdf.")
@click.option("--top", type=WholeNumber(min=1), default=10, show_default=True, help="Show so many columns.")
@click.option(
    "--resamples",
    "n_resamples",
    type=WholeNumber(min=1),
    default=999,
    show_default=True,
    help="Number of permutations.",
)
@row_numbers_option
@raw_text_option
@report_option
@json_option
def compare() -> None:
    """Test whether the rows of the tables A and B are from one distribution (isopleth --help lists the formats).

    Columns are matched by name where both files have names, and by position otherwise. Columns that only one table has, and
    columns whose kind changed, are reported first, and the common columns are compared.
    """


@click.command(cls=Command, stages="reading fitting writing", short_help="Find known anomalies in an included table.")
@file_option("--plot", "Where to draw the picture; .png, .svg or .pdf.  [default: isopleth-demo.png, with matplotlib]")
@json_option
def demo() -> None:
    """Find the anomalies in an included table, in which they are known, and draw them."""


@click.command(
    cls=Command,
    stages="reading fitting writing",
    short_help="Say what values to expect where others are known.",
    reads={"file": "files"},
)
@click.argument("file", type=PATH)
@given_option("Known values", required=True)
@confidence_option
@law_size_option
@table_options("--columns", "Use these columns only.")
@file_option("--plot", "Draw the density of each column; .png, .svg or .pdf.")
@report_option
@json_option
def expect() -> None:
    """Say what to expect of the other columns of FILE where some have given values, by laws that are fitted to its rows."""


@click.command(
    cls=Command,
    stages="reading fitting filling writing",
    short_help="Fill the missing cells of a table.",
    reads={"file": "files", "reference": "files"},
    writes="frame",
)
@click.argument("file", type=PATH)
@file_option("--out", "Write the table there; .csv, .tsv, .jsonl, .parquet or, for numbers, .npy.", required=True)
@file_option("--reference", "Fit the laws to this table, and fill FILE by them.")
@file_option(
    "--filled",
    "Write the filled cells there, one a row: where, value, and its interval or probability; .csv or .parquet.",
)
@click.option(
    "--interval", is_flag=True, help="Also write NAME_low and NAME_high for columns of numbers and times with gaps."
)
@click.option(
    "--strategy",
    type=click.Choice(["mean", "median", "draw"]),
    default="mean",
    show_default=True,
    help="What fills a number or time; a draw fills words too, and another --seed makes another draw.",
)
@click.option("--seed", type=WholeNumber(min=0), default=0, show_default=True, help="Seed of --strategy draw.")
@click.option(
    "--limits",
    type=click.Choice(["keep", "fill"]),
    default="keep",
    show_default=True,
    help="Whether cells that say a limit, such as <0.5, stay as they are, or get the number to expect inside it.",
)
@confidence_option
@law_size_option
@table_options("--columns", "Use these columns only.")
@raw_text_option
@report_option
@json_option
def fill() -> None:
    """Fill the missing cells of FILE by what the known cells of their rows lead to expect.

    Each cell is filled from the law of its column given the known cells of the row, as DensityImputer does: numbers by the mean,
    words by the likeliest one. Sums and products of columns that hold in all known rows hold in filled rows.
    Columns that are left out, such as identifiers, are written as they are. Numbers and ends of intervals stay between the least
    and the largest known cell of their column, unless a line leads beyond them.
    """


@click.command(
    cls=Command,
    stages="reading fitting writing",
    short_help="Fit a model to a table and keep it in a file.",
    reads={"file": "file"},
    writes="model",
)
@click.argument("file", type=PATH)
@file_option("--out", "Keep the fitted model in this file.", required=True, metavar="MODEL")
@click.option(
    "--kind",
    type=click.Choice(["density", "score"]),
    default="density",
    show_default=True,
    help="A density or its score (the gradient of the log density), both on landmarks.",
)
@table_options("--columns", "Use these columns only.")
@click.option(
    "--size",
    type=WholeNumber(min=2),
    help="Landmarks, the rows that the model consists of: more are more accurate and slower.  "
    f"[default: {DENSITY_SIZE} for a density, {MIXED_SIZE:,} of a table with words or gaps; for a score 300, and fewer beyond "
    "five columns]",
)
@click.option(
    "--length-scale",
    type=Number(min=0, min_open=True),
    help="Length scale of all columns.  [default: chosen from the data]",
)
@click.option("--chunk-rows", type=WholeNumber(min=1), help="Rows in memory at a time.  [default: those of 8 MiB]")
@click.option("--resume", is_flag=True, help="Continue an interrupted run, if there was one.")
@json_option
def fit() -> None:
    """Fit a model to FILE, a table in .csv, .tsv, .parquet or .npy that may be larger than memory.

    A table with words, times or missing cells is read once, and a density is fitted to a random part of it; the first 100,000
    rows decide what its columns are. A table of complete numbers is read several times. Until the model is complete, the sums
    of each pass are kept in MODEL.partial; with --resume an interrupted run gives the same bytes in the end. Detectors of
    anomalies are fitted in memory: isopleth anomalies --save.
    """


@click.command(
    cls=Command,
    stages="reading fitting",
    short_help="Watch rows from standard input for a change.",
    reads={"reference": "files"},
)
@file_option("--reference", "Table of usual rows, with which the others are compared.", required=True)
@file_option("--state", "Store the position in the stream in this file; if the file exists, continue there.")
@click.option(
    "--replay", is_flag=True, help="Standard input begins at its first row again: skip rows counted in --state."
)
@click.option("--window", type=WholeNumber(min=2), default=50, show_default=True, help="Rows compared at a time.")
@click.option(
    "--run-length",
    "expected_run_length",
    type=Number(min=0, min_open=True),
    default=10_000,
    show_default=True,
    help="Mean number of rows until a false alarm.",
)
@click.option(
    "--min-effect",
    type=Number(min=0),
    default=0.0,
    show_default=True,
    help="Least change to tell: with a context as a share of what is usual, so that 0.1 is 10 % more or less; of windows the "
    "share of rows that would have moved far away.",
)
@click.option(
    "--context",
    multiple=True,
    type=ColumnList(),
    metavar="COL,...",
    help="Judge each cell given these columns: times (hour and weekday), hour, weekday, words such as a holiday, and numbers "
    "such as a load; repeatable. By default the times of a reference of a week or more; none compares windows.",
)
@click.option(
    "--timezone",
    metavar="ZONE",
    help="Zone whose clock counts for --context, such as Europe/Berlin; times without a zone are in UTC then.",
)
@table_options("--columns", "Use these columns only.")
@ignore_missing_option
@file_option(
    "--metrics",
    "Keep counts of rows and alarms, the statistic and its threshold in this file, in the text format of Prometheus.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each alarm, and nothing else.")
@report_option
def monitor() -> None:
    """Compare rows from standard input (CSV) with the reference and report changes as they are detected.

    Rows are counted from 1. With --state the run can be killed at any moment and started again. An alarm is printed before
    the file is written, so that none is lost; after a kill the last ones may be printed twice, with the same row. A second run
    with the same --state is refused while the first one lasts. The exit code is 3 if the run has raised an alarm, and 0 if not.
    """


@click.command(
    cls=Command,
    stages="reading fitting estimating writing",
    short_help="Estimate the shares of classes in a table without labels.",
    reads={"train": "file", "test": "file"},
)
@click.argument("train", type=PATH)
@click.argument("test", type=PATH)
@click.option("--target", required=True, metavar="COL", help="The column of TRAIN that names the class of each row.")
@click.option(
    "--by", metavar="COL", help="Estimate the shares among the rows of TEST with each entry of this column, too."
)
@table_options("--columns", "Use these columns only, besides the target.")
@ignore_missing_option
@click.option("--confidence-level", type=float, default=0.95, show_default=True, help="Confidence of each interval.")
@click.option(
    "--population",
    is_flag=True,
    help="Give intervals for the population that the rows of TEST were drawn from, and not for these rows.",
)
@file_option("--out", "Write class, prior, lower and upper, with --by for each group; .csv or .parquet.")
@file_option("--plot", "Draw the shares; .png, .svg or .pdf.")
@raw_text_option
@report_option
@json_option
def prior() -> None:
    """Estimate the share of each class among the rows of TEST from labelled rows in TRAIN.

    The classes may be numbers or words. Other columns of TEST than those of TRAIN are not read. With --by REGION the shares in
    each region are estimated from the same labels; the region itself does not tell classes apart.
    """


@click.command(
    cls=Command,
    stages="reading fitting drawing writing",
    short_help="Make new rows like those of a table.",
    reads={"file": "files", "model": "model file"},
    writes="frame",
)
@click.argument("file", type=PATH, required=False)
@click.option("-n", "--rows", type=WholeNumber(min=1), required=True, help="Number of rows to make.")
@file_option("--out", "Write the rows there; .csv, .tsv, .jsonl, .parquet or, for numbers, .npy.", required=True)
@click.option("--seed", type=WholeNumber(min=0), default=0, show_default=True, help="Seed of the draws.")
@file_option("--model", "Draw from this density instead of fitting one to FILE.", metavar="MODEL")
@file_option("--save", "save_to", "Keep the fitted density in this file.", metavar="MODEL")
@size_option
@given_option("Values that some columns have in every row")
@click.option("--complete", is_flag=True, help="Leave no cell empty.")
@table_options("--columns", "Use these columns only.")
@raw_text_option
@report_option
@json_option
def sample() -> None:
    """Make new rows like those of FILE, a table (isopleth --help lists the formats).

    A density is fitted to FILE and rows are drawn from it. Every column keeps its type, its decimals and its distribution, and
    cells are missing about as often and in the same patterns. Products and sums of columns that hold in every row of FILE hold in
    the new rows, and other such relations are named where they do not. Identifiers and free text are left out. The rows are
    new, but they are no protection of the people in FILE: the smallest and the largest values and rare words are those of FILE.
    """


@click.command(
    cls=Command,
    stages="reading scoring writing",
    short_help="Write the answers of a model for each row of a table.",
    reads={"model": "model file", "file": "file"},
    writes="answers",
)
@click.argument("model", type=PATH)
@click.argument("file", type=PATH)
@file_option("--out", "Write line (or row) and answers there; .csv, .parquet or .npy.", required=True, metavar="RESULT")
@table_options("--columns", "Use these columns only.")
@click.option("--chunk-rows", type=WholeNumber(min=1), help="Rows in memory at a time.  [default: those of 8 MiB]")
@click.option("--resume", is_flag=True, help="Continue an interrupted run, if there was one.")
@row_numbers_option
@json_option
def score() -> None:
    """Write the answers of MODEL for each row of FILE, a table in .csv, .tsv, .parquet or .npy that may be larger than memory.

    RESULT has the line of each row in FILE, or its number if FILE has no lines, and the answers of the model. A density has
    log_density. A detector has score, pvalue and label (1: flagged). A score has a vector, with d_ before the names of the
    columns. A difference of densities has difference. An .npy file has the answers alone. During a run the answers are stored in
    RESULT.partial; with --resume an interrupted run gives the same bytes in the end.
    """


@click.command(
    cls=Command,
    stages="reading writing",
    short_help="Say what a table holds, and what is odd about it.",
    reads={"file": "files"},
)
@click.argument("file", type=PATH)
@table_options("--columns", "Use these columns only.", bad_cells="missing")
@report_option
@json_option
def describe() -> None:
    """Say what the columns of FILE are taken as and why, and what is odd: repeated rows, gaps, columns with one value only, and
    numbers that look like codes for missing cells, such as -999.
    """


@click.command(cls=Command, short_help="Show versions, processors, memory and optional libraries.")
@json_option
def doctor() -> None:
    """Show what isopleth runs on: versions, processors, memory, GPU, and which optional libraries are installed.

    Paste its output into a report of a problem.
    """


COMMANDS = [
    anomalies,
    cells,
    changes,
    compare,
    demo,
    describe,
    doctor,
    expect,
    fill,
    fit,
    monitor,
    prior,
    sample,
    score,
]
for _command in COMMANDS:
    program.add_command(_command)
