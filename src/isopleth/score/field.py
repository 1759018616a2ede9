"""A fitted score as a sum of terms, in frame coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from isopleth._namespace import Array, namespace
from isopleth.score.spaces import Space


class Term(Protocol):
    """What a score is a sum of."""

    def value(self, x: Array) -> Array:
        """The vectors at rows `x`, of shape (n, d)."""

    def divergence(self, x: Array) -> Array:
        """Their divergence, of shape (n,)."""

    def energy(self, x: Array) -> Array:
        """A function whose gradient they are, of shape (n,); InputError where there is none."""


@dataclass(frozen=True)
class KernelTerm:
    r""":math:`\sum_j K(x, c_j)\, a_j`.

    Parameters
    ----------
    space : Space
        The space of K.
    centers, coefficients : arrays of shape (m, d)
        Centres and the vector of each.
    """

    space: Space
    centers: Array
    coefficients: Array

    def value(self, x: Array) -> Array:
        """One product."""
        return self.space.operator(x, self.centers).matvec(self.coefficients)

    def divergence(self, x: Array) -> Array:
        """In closed form."""
        return self.space.divergence(x, self.centers, self.coefficients)

    def energy(self, x: Array) -> Array:
        """In closed form."""
        return self.space.energy(x, self.centers, self.coefficients)


@dataclass(frozen=True)
class ZetaTerm:
    r""":math:`a\,\zeta`, the term of full forms.

    Parameters
    ----------
    space : Space
        The space of zeta.
    samples : array of shape (m, d)
        What it averages over.
    weights : array of shape (m,)
        Of sum 1.
    factor : float
        a.
    """

    space: Space
    samples: Array
    weights: Array
    factor: float

    def value(self, x: Array) -> Array:
        """One product."""
        return self.factor * self.space.zeta(x, self.samples, self.weights)

    def divergence(self, x: Array) -> Array:
        """In closed form."""
        return self.factor * self.space.zeta_divergence(x, self.samples, self.weights)

    def energy(self, x: Array) -> Array:
        """In closed form."""
        return self.factor * self.space.zeta_energy(x, self.samples, self.weights)


@dataclass(frozen=True)
class ScoreField:
    """A sum of terms.

    Parameters
    ----------
    terms : tuple of Term
        KernelTerm, ZetaTerm, GaussianBase.
    """

    terms: tuple[Term, ...]

    def value(self, x: Array) -> Array:
        """The score at rows `x`, of shape (n, d)."""
        return sum(term.value(x) for term in self.terms)

    def divergence(self, x: Array) -> Array:
        """Its divergence, of shape (n,)."""
        return sum(term.divergence(x) for term in self.terms)

    def energy(self, x: Array) -> Array:
        """The log density up to a constant, of shape (n,)."""
        return sum(term.energy(x) for term in self.terms)

    def hyvarinen_terms(self, x: Array) -> Array:
        r""":math:`\operatorname{div} s + |s|^2/2` at rows `x`."""
        value = self.value(x)
        return self.divergence(x) + 0.5 * namespace(value).sum(value * value, axis=1)
