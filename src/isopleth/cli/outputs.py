"""Files that a run writes: checked before the work, written after it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sklearn.base import BaseEstimator

from isopleth.cli.findings import Findings
from isopleth.errors import InputError
from isopleth.io import check_target, save
from isopleth.io.writing import check_table_target, write_table
from isopleth.plotting import check_figure_target, plot_anomalies, save_figure


@dataclass(frozen=True)
class Outputs:
    """Paths of the files to write, None for those that are not requested, and whether text in CSV is left as it is."""

    rows: Path | None = None
    model: Path | None = None
    figure: Path | None = None
    raw_text: bool = False

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
        refuse_same({**inputs, "--out": self.rows, "--save": self.model, "--plot": self.figure})
        if self.rows:
            check_table_target(self.rows)
        if self.model:
            check_target(self.model)
        if self.figure:
            check_figure_target(self.figure)

    def write(self, findings: Findings, detector: BaseEstimator) -> None:
        """Write the requested files, each completely or not at all."""
        # Draw first, so that an error in drawing leaves no other files.
        table = findings.table
        picture = (table.values, table.names, findings.scores, findings.p_values, findings.labels)
        figure = plot_anomalies(*picture) if self.figure else None
        if self.rows:
            write_table(self.rows, findings.columns(), raw_text=self.raw_text)
        if self.model:
            save(detector, self.model)
        if self.figure and figure is not None:
            save_figure(figure, self.figure)


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
