"""Pages of results: one HTML file with sentences, a table and pictures, which needs no network."""

from __future__ import annotations

from isopleth.report.page import Chart, Page, PageTable, Series
from isopleth.report.pages import page_of
from isopleth.report.writing import Context, check_report_target, write_report

__all__ = [
    "Chart",
    "Context",
    "Page",
    "PageTable",
    "Series",
    "check_report_target",
    "page_of",
    "write_report",
]
