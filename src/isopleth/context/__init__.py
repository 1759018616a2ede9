"""Cells in their context: residuals given the other columns of a row, and ranks given the clock or named columns."""
