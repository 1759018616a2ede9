"""Density estimators."""

from __future__ import annotations

from isopleth.density.sosrep import SOSREP

__all__ = ["SOSREP"]
