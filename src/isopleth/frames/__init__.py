"""Frames: invertible maps of the rows, with their log-volumes, in which kernels describe a table.

With z = T(x), a density is log p(x) = log p_z(T(x)) + log |det T'(x)|, a score s(x) = T'(x)^T s_z(T(x)) + grad log |det T'(x)|.
A `Frame` is a rule with parameters; ``frame.fit(rows, weights)`` returns a `FrameMap`, which holds arrays only.

>>> import numpy as np
>>> from isopleth.frames import get_frame
>>> rows = np.array([[0.0, 1.0], [1.0, 2.9], [2.0, 5.2], [3.0, 7.1]])
>>> map = get_frame("whiten").fit(rows, np.ones(4))
>>> z = map.forward(rows)
>>> np.allclose(np.cov(z.T, bias=True), np.eye(2), atol=1e-3), np.allclose(map.inverse(z), rows)
(True, True)
"""

from isopleth.frames.base import ColumnMap as ColumnMap
from isopleth.frames.base import Frame as Frame
from isopleth.frames.base import FrameMap as FrameMap
from isopleth.frames.base import MapAt as MapAt
from isopleth.frames.bounded import BoundedMap as BoundedMap
from isopleth.frames.bounded import BoundedMarginalMap as BoundedMarginalMap
from isopleth.frames.compose import FRAMES as FRAMES
from isopleth.frames.compose import Compose as Compose
from isopleth.frames.compose import ComposedMap as ComposedMap
from isopleth.frames.compose import Gaussianize as Gaussianize
from isopleth.frames.compose import get_frame as get_frame
from isopleth.frames.linear import LinearMap as LinearMap
from isopleth.frames.linear import LocalScale as LocalScale
from isopleth.frames.linear import Scale as Scale
from isopleth.frames.linear import ScaleMap as ScaleMap
from isopleth.frames.linear import Whiten as Whiten
from isopleth.frames.marginal import Marginal as Marginal
from isopleth.frames.marginal import MarginalMap as MarginalMap
from isopleth.frames.sinh_arcsinh import SinhArcsinh as SinhArcsinh
from isopleth.frames.sinh_arcsinh import SinhArcsinhMap as SinhArcsinhMap

__all__ = [
    "BoundedMap",
    "BoundedMarginalMap",
    "ColumnMap",
    "Compose",
    "ComposedMap",
    "Frame",
    "FrameMap",
    "Gaussianize",
    "LinearMap",
    "LocalScale",
    "MapAt",
    "Marginal",
    "MarginalMap",
    "Scale",
    "ScaleMap",
    "SinhArcsinh",
    "SinhArcsinhMap",
    "Whiten",
    "get_frame",
]
