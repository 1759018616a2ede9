"""Legs of the search for changes, in the order in which they run. A new one is a file here and a line in `LEGS`."""

from isopleth.tasks.changes.legs import columns, cycles, given_others, innovations, location, scatter, shapes
from isopleth.tasks.changes.legs.leg import Leg

LEGS: tuple[Leg, ...] = (
    location.LEG,
    columns.LEG,
    given_others.LEG,
    scatter.LEG,
    cycles.LEG,
    innovations.LEG,
    shapes.LEG,
)
