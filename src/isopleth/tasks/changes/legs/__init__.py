"""Legs of the search for changes, in the order in which they run. A new one is a file here and a line in `LEGS`."""

from isopleth.tasks.changes.legs import columns, cycles, innovations, location, scatter, shapes
from isopleth.tasks.changes.legs.leg import Leg

LEGS: tuple[Leg, ...] = (location.LEG, columns.LEG, scatter.LEG, cycles.LEG, innovations.LEG, shapes.LEG)
