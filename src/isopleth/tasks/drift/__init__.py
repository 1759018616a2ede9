"""Drift detection: when a stream of rows no longer resembles a reference sample."""
