"""Files that a run writes: checked before the work, written after it."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isopleth.cli.answers import check_report
from isopleth.cli.findings import Findings
from isopleth.cli.mixed import MixedTable, rows_of
from isopleth.cli.models import matched_columns
from isopleth.errors import DataWarning, InputError
from isopleth.io import Table, check_target, save
from isopleth.plotting import check_figure_target, plot_anomalies, save_figure
from isopleth.tables.write import check_table_target, write_table
from isopleth.tasks.anomaly.detector import AnomalyDetector


@dataclass(frozen=True)
class Outputs:
    """Paths of the files to write, None for those that are not requested, and whether text in CSV is left as it is."""

    rows: Path | None = None
    model: Path | None = None
    figure: Path | None = None
    raw_text: bool = False
    page: Path | None = None

    def check(self, inputs: dict[str, Path | None]) -> None:
        """Check that files can be written and do not replace another file of the same run.

        Parameters
        ----------
        inputs : dict of str to Path
            Files that are read, by the name of their argument.

        Raises
        ------
        InputError, MissingExtraError
            If any file cannot be written.
        """
        refuse_same({**inputs, "--out": self.rows, "--save": self.model, "--plot": self.figure, "--report": self.page})
        if self.rows:
            check_table_target(self.rows)
        if self.model:
            check_target(self.model)
        if self.figure:
            check_figure_target(self.figure)
        check_report(self.page)

    def write(self, findings: Findings, detector: AnomalyDetector) -> None:
        """Write the requested files, each completely or not at all."""
        # Draw first, so that an error in drawing leaves no other files.
        figure = None
        if self.figure:
            with matched_columns(), warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # which was shown when the rows were scored
                drawn = numbers_of(findings.table, detector)
            values, names, times = drawn
            judged = (findings.scores, findings.p_values, findings.labels, findings.known)
            figure = plot_anomalies(values, names, *judged, times=times)
        if self.rows:
            write_table(self.rows, findings.columns(), raw_text=self.raw_text)
        if self.model:
            save(detector, self.model)
        if self.figure and figure is not None:
            save_figure(figure, self.figure)


def numbers_of(table: Table, detector: AnomalyDetector) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the numbers of a table, the names of their columns, and which of them are times; see `AnomalyDetector.drawn`."""
    if isinstance(table, MixedTable) or np.isnan(table.values).any():
        return detector.drawn(rows_of(table))
    return table.values, table.names, []


def refuse_same(files: dict[str, Path | None]) -> None:
    """Refuse two options that name one file."""
    seen: dict[str, str] = {}
    for name, path in files.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise InputError(f"{name} {path} is the same file as {seen[place]}; give it another name.")
        seen[place] = name
