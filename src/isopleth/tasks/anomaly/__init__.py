"""Anomaly detection: scores, p-values, flags and explanations of rows."""
