"""Covariance and column evidence, tails, and the density of a clean reference, each held against a slow form of it."""

import numpy as np
import pytest
from anomaly_tables import table
from scipy.stats import genpareto, norm, rankdata
from sklearn.metrics import roc_auc_score

from isopleth.conditional.pseudo_likelihood import PseudoLikelihood
from isopleth.core.budget import ONE_THREAD, Budget
from isopleth.core.covariance import oracle_shrinkage
from isopleth.core.laws import MOST_STEPS, EmpiricalLaw
from isopleth.core.tails import Tail
from isopleth.tasks.anomaly.covariance import CovarianceEvidence
from isopleth.tasks.anomaly.pooled_rule import ColumnTails
from isopleth.tasks.anomaly.reference_rule import (
    FOREST_FOLDS,
    RankedColumns,
    ReferenceRule,
)
from isopleth.tasks.anomaly.training_table import COMMON, NEW, TrainingTable, discounted, spread_of

LIMITS = Budget(2.0**30, 1)


def repeated():
    """Rows of which some occur a few times and one is a common value."""
    X = table(80)
    return np.concatenate([X, X[:5], X[:5], np.repeat(X[10:11], 30, axis=0)])


class TestTable:
    def test_few_copies_count_once_and_very_many_in_full(self):
        c = np.array([1, 2, 8, 1000, 10**6])
        w = discounted(c)
        np.testing.assert_allclose(w[:3], [1, 1, 512 / 320])
        np.testing.assert_allclose(w[3:], c[3:], rtol=1e-3)
        assert (np.diff(discounted(np.arange(1, 200))) >= 0).all()

    def test_rows_are_known_again_but_for_common_values(self):
        X = repeated()
        training = TrainingTable.of(X)
        found = training.index.find(X)
        common = training.copies[training.place] > COMMON
        assert common.sum() == 31
        np.testing.assert_array_equal(found, np.where(common, NEW, training.place))
        assert (training.index.find(X + 1e-9) == NEW).all()

    def test_one_extreme_cell_does_not_change_the_spread(self):
        X = table(300)
        wild = X.copy()
        wild[0, 1] = 1e12
        np.testing.assert_allclose(spread_of(wild, np.ones(300)), spread_of(X, np.ones(300)), rtol=0.02)
        assert spread_of(np.r_[np.zeros(99), 1.0][:, None], np.ones(100))[0] > 0

    def test_the_spread_of_many_columns_is_their_weighted_deviation_between_two_order_statistics(self):
        X, weights = np.random.default_rng(0).normal(size=(2500, 110)), 1.0 + np.arange(2500.0) % 3.0
        given = X.copy()
        ordered = np.sort(X, axis=0)
        drawn_in, share = np.clip(X, ordered[25], ordered[-26]), weights / weights.sum()
        expected = np.sqrt(share @ (drawn_in - share @ drawn_in) ** 2)
        np.testing.assert_allclose(spread_of(X, weights), expected, rtol=1e-12)
        np.testing.assert_array_equal(X, given)  # the work is on copies of some columns at a time

    @pytest.mark.parametrize("n", [2, 3, 4, 5, 89, 101])
    def test_the_lower_of_the_two_stays_where_the_upper_is_found(self, n):
        X = np.random.default_rng(n).normal(size=(n, 40))
        ordered, low = np.sort(X, axis=0), 0 if n < 4 else -(-n // 100)
        expected = np.clip(X, ordered[low], ordered[n - 1 - low]).std(axis=0)
        np.testing.assert_allclose(spread_of(X, np.ones(n)), expected, rtol=1e-12)

    def test_blocks_hold_all_rows_within_the_memory(self):
        parts = Budget(20_000.0, 2).blocks(1000, 100.0)
        assert np.concatenate([np.arange(1000)[part] for part in parts]).tolist() == list(range(1000))
        assert max(part.stop - part.start for part in parts) == 100


class TestEmpiricalLaw:
    def test_by_counting(self):
        rng = np.random.default_rng(0)
        x, w = rng.integers(0, 9, 40).astype(float), rng.uniform(1, 3, 40)
        law = EmpiricalLaw.of(x, w)
        for q in np.arange(-1, 10, 0.5):
            assert law.tails(np.array([q]))[0][0] == pytest.approx(w[x <= q].sum())
            assert law.at_least(np.array([q]))[0] == pytest.approx(w[x >= q].sum())
        for share in (0.5, 0.25, 0.1):
            quantile = law.upper(share)
            assert w[x > quantile].sum() <= share * w.sum() + 1e-9
            assert w[x >= quantile].sum() > share * w.sum() - 1e-9

    def test_long_laws_keep_their_ends(self):
        x = np.random.default_rng(0).normal(size=50_000)
        law = EmpiricalLaw.of(x, np.ones(50_000))
        assert len(law.values) <= MOST_STEPS
        ends = np.sort(x)[[0, 5, -6, -1]]
        np.testing.assert_allclose(law.at_least(ends), [50_000, 49_995, 6, 1])
        q = np.quantile(x, [0.3, 0.5, 0.9])
        np.testing.assert_allclose(law.tails(q)[0] / 50_000, [0.3, 0.5, 0.9], atol=2e-4)


class TestColumns:
    def test_by_counting_without_the_row_itself(self):
        training = TrainingTable.of(table(40))
        tails, of_fit = ColumnTails.fit(training)
        np.testing.assert_array_equal(of_fit, tails.evidence(training.rows, training.known, LIMITS))
        for i in (0, 11, 39):
            others, row = np.delete(training.rows, i, axis=0), training.rows[i]
            low, high = (1 + (others <= row).sum(0)) / 40, (1 + (others >= row).sum(0)) / 40
            want = -np.log(np.minimum(1.0, 2 * np.minimum(low, high))).sum()
            assert tails.evidence(row[None], np.array([i]), LIMITS)[0] == pytest.approx(want)

    def test_evidence_of_the_fit_is_that_of_a_search(self):
        """Few values, values that differ by rounding, gaps, copies that are common, words, and more steps than a law keeps."""
        rng = np.random.default_rng(1)
        X = np.column_stack([rng.integers(0, 9, 300) * 1.0, rng.normal(size=300), rng.integers(0, 3, 300)])
        X[::7, 1] += 1e-10
        X[1::7, 1] = X[::7, 1][: len(X[1::7])] + 3e-10
        X[::11, 0] = np.nan
        for rows, numeric in ((np.r_[X, np.tile(X[:1], (40, 1))], 2), (rng.normal(size=(9000, 1)), 1)):
            training = TrainingTable.of(rows, numeric)
            tails, of_fit = ColumnTails.fit(training)
            np.testing.assert_array_equal(of_fit, tails.evidence(training.rows, training.known, LIMITS))

    def test_new_rows_count_themselves(self):
        tails, _ = ColumnTails.fit(TrainingTable.of(np.arange(10.0)[:, None]))
        got = tails.evidence(np.array([[-5.0], [4.5], [9.0], [20.0]]), np.full(4, NEW), LIMITS)
        np.testing.assert_allclose(np.exp(-got), [2 / 11, 1.0, 4 / 11, 2 / 11])


class TestCovariance:
    def test_a_row_of_the_half_is_judged_by_the_half_without_it(self):
        X = table(200, dim=2)
        X[:, 1] += 4 * X[:, 0]
        training = TrainingTable.of(X)
        ellipsoid, q = CovarianceEvidence.fit(training, LIMITS)
        z = training.rows / training.spread
        inside = np.flatnonzero(ellipsoid.leverage > 0)
        assert len(inside) == pytest.approx(100, abs=1)
        rho = oracle_shrinkage(np.cov(z[inside].T, bias=True), len(inside))
        got = ellipsoid.evidence(training.rows, training.known, LIMITS)
        np.testing.assert_array_equal(ellipsoid.without_own(q, training.known), got)
        for i in inside[::17]:
            rest = np.setdiff1d(inside, [i])
            S = np.cov(z[rest].T, bias=True)
            A = (1 - rho) * S + rho * np.trace(np.cov(z[inside].T, bias=True)) / 2 * np.eye(2)
            u = z[i] - z[rest].mean(axis=0)
            assert got[i] == pytest.approx(u @ np.linalg.solve(A, u), rel=1e-2)  # the trace is that with the row

    def test_a_row_outside_of_the_half_has_its_plain_distance(self):
        X = table(200)
        X[:, 1] += 4 * X[:, 0]
        training = TrainingTable.of(X)
        ellipsoid, _ = CovarianceEvidence.fit(training, LIMITS)
        u = training.rows / training.spread - ellipsoid.centre
        plain = np.einsum("ij,ij->i", u, np.linalg.solve(ellipsoid.factor @ ellipsoid.factor.T, u.T).T)
        outside = ellipsoid.leverage == 0
        got = ellipsoid.evidence(training.rows, training.known, LIMITS)
        np.testing.assert_allclose(got[outside], plain[outside])
        assert (got[~outside] > plain[~outside]).all()

    def test_forty_percent_of_extreme_rows_do_not_change_it(self):
        X = np.random.default_rng(0).normal(size=(500, 3))
        X[:200] = 12.0 + 0.1 * X[:200]
        training = TrainingTable.of(X)
        ellipsoid, _ = CovarianceEvidence.fit(training, LIMITS)
        scores = ellipsoid.evidence(training.rows, training.known, LIMITS)[training.place]
        assert scores[:200].min() > scores[200:].max()

    def test_half_of_the_rows_alike(self):
        X = np.concatenate([np.zeros((100, 2)), np.random.default_rng(0).normal(size=(40, 2))])
        training = TrainingTable.of(X)
        scores = CovarianceEvidence.fit(training, LIMITS)[0].evidence(training.rows, training.known, LIMITS)
        assert np.isfinite(scores).all()

    def test_columns_that_are_linear_functions_of_one_another(self):
        X = table(100)
        training = TrainingTable.of(np.c_[X, X[:, :1] + X[:, 1:2]])
        scores = CovarianceEvidence.fit(training, LIMITS)[0].evidence(training.rows, training.known, LIMITS)
        assert np.isfinite(scores).all()


class TestTail:
    def test_ranks_in_the_body(self):
        x = np.random.default_rng(0).exponential(size=400)
        tail = Tail.of(x, np.ones(400))
        body = x < np.quantile(x, 0.85)
        np.testing.assert_allclose(np.exp(-tail.surprise(x[body], new=0.0)), [(x >= v).mean() for v in x[body]])
        np.testing.assert_allclose(np.exp(-tail.surprise(x[body])), [((x >= v).sum() + 1) / 401 for v in x[body]])

    @pytest.mark.parametrize("shape", [0.0, 0.5])
    def test_the_fitted_tail_is_that_of_the_law(self, shape):
        x = genpareto(shape).rvs(200_000, random_state=0)
        tail = Tail.of(x, np.ones(len(x)))
        far = genpareto(shape).isf([1e-3, 1e-5, 1e-7])
        want = -np.log([1e-3, 1e-5, 1e-7])
        np.testing.assert_allclose(tail.surprise(far), want, rtol=0.1)

    def test_values_beyond_all_rows_still_differ_also_with_ties(self):
        for x in (np.random.default_rng(0).normal(size=50), np.r_[np.zeros(99), 5.0], np.array([0.0, 1.0])):
            found = Tail.of(x, np.ones(len(x))).surprise(x.max() + np.array([0.0, 1.0, 10.0, 1e3]))
            assert (np.diff(found) >= 0).all()
            assert found[-1] > found[0]

    def test_where_the_fitted_tail_comes_down_to_a_share(self):
        tail = Tail.of(np.random.default_rng(0).exponential(size=100), np.ones(100))
        assert tail.surprise(np.array([tail.threshold(1e-6)]), new=0.0)[0] == pytest.approx(-np.log(1e-6))
        equal = Tail.of(np.zeros(9), np.ones(9))
        assert equal.threshold(0.01) == 0.0
        np.testing.assert_allclose(equal.surprise(np.array([-1.0, 0.0, 5.0]), new=0.0), 0.0)

    def test_no_value_of_a_row_is_at_a_step(self):
        x = np.random.default_rng(0).exponential(size=75)
        for values in (x, np.round(x), np.r_[np.zeros(90), np.ones(10)]):
            tail = Tail.of(values, np.ones(len(values)))
            for some, new in ((tail, 0.0), (tail, 1.0), (tail.smooth(), 0.0)):
                here, there = some.surprise(values, new), some.surprise(values + 1e-12, new)
                np.testing.assert_allclose(there, here, atol=1e-9)


def reference_evidence(others, rows, widths):
    """Densities on columns and on normal scores, and neighbours, of rows among others: written from the definitions."""
    found = []
    for normal, width in zip((False, True), widths, strict=True):
        at, of = others, rows
        if normal:
            ranks = (rankdata(others, axis=0) - 0.5) / len(others)
            at, of = norm.ppf(ranks), np.empty_like(rows)
            for j, (column, x) in enumerate(zip(others.T, rows.T, strict=True)):
                beyond = np.log1p(np.clip(x - column.max(), 0, None) / column.std())
                beyond -= np.log1p(np.clip(column.min() - x, 0, None) / column.std())
                order = np.argsort(column)
                of[:, j] = np.interp(x, column[order], at[order, j]) + beyond
        distances = np.abs(of[:, None] - at).dot(1 / at.std(axis=0))
        found.append(-np.log(np.exp(-distances / width).mean(axis=1)))
    return np.column_stack([*found, np.sort(distances, axis=1)[:, :5].mean(axis=1)])


class TestReference:
    def test_evidence_by_hand(self):
        """Each copy counts. A row is judged by ranks, deviations and distances without one copy of its own, or of a fold."""
        X = repeated()
        training = TrainingTable.of(X)
        rule, _ = ReferenceRule.fit(training, 0, False, LIMITS)
        found = rule.evidence(training.rows, training.known, LIMITS)[training.place]
        widths = [space.width for space in rule.spaces]
        for i in np.flatnonzero(training.copies[training.place] <= COMMON)[::7]:
            others = np.delete(X, i, axis=0)
            np.testing.assert_allclose(found[i, :3], reference_evidence(others, X[i : i + 1], widths)[0])
        new = table(6, seed=3) * 2
        of_new = rule.evidence(new, np.full(6, NEW), LIMITS)[:, :3]
        others = np.delete(X, np.flatnonzero(rule.fold[training.place] == 0)[0], axis=0)
        np.testing.assert_allclose(of_new, reference_evidence(others, new, widths))

    def test_conditional_laws_do_not_see_the_fold_that_they_judge(self):
        X = np.c_[table(150), np.random.default_rng(0).integers(3, size=150)]
        training = TrainingTable.of(X, 3)
        rule, _ = ReferenceRule.fit(training, 0, False, LIMITS)
        found = rule.evidence(training.rows, training.known, LIMITS)[:, 4]
        columns = rule.conditionals.columns
        for fold in (0, 3):
            space = rule.centers.space(rule.centers.fold % FOREST_FOLDS == fold, rule.centers.ranked)
            law = PseudoLikelihood.fit(space.rows[:, columns], columns >= 3, space.copies, 0, ONE_THREAD)
            own = rule.fold % FOREST_FOLDS == fold
            assert len(space.rows) == 150 - own.sum()
            np.testing.assert_allclose(found[own], law.evidence(space.enter(training.rows[own])[:, columns]))

    def test_a_broken_relation_of_two_columns_among_many_is_found(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 12))
        X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=400)
        new = rng.normal(size=(200, 12))
        new[:100, 1] = new[:100, 0]
        rule, _ = ReferenceRule.fit(TrainingTable.of(X), 0, False, LIMITS)
        surprise = rule.surprises(new, np.full(200, NEW), LIMITS)
        auc = [roc_auc_score(np.arange(200) >= 100, s) for s in surprise.T]
        assert auc[4] > 0.75 > 0.7 > max(auc[:4])

    def test_widths_by_hand(self):
        X = repeated()
        rule, _ = ReferenceRule.fit(TrainingTable.of(X), 0, False, LIMITS)
        for space, at in zip(rule.spaces, (X, norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))), strict=True):
            distinct = np.unique(at / at.std(axis=0), axis=0)
            apart = np.abs(distinct[:, None] - distinct).sum(axis=2)
            assert space.width == pytest.approx(np.median([d[d > 1e-12].min() for d in apart]) / 4)

    def test_the_order_of_rows_and_columns_does_not_matter(self, monkeypatch):
        monkeypatch.setattr("isopleth.tasks.anomaly.reference_rule.MOST_CENTERS", 60)
        monkeypatch.setattr("isopleth.tasks.anomaly.reference_rule.FOLD_CELLS", 1)
        X = table(90)
        training = TrainingTable.of(X)
        _, found = ReferenceRule.fit(training, 0, False, LIMITS)
        other = TrainingTable.of(X[::-1, ::-1])
        _, again = ReferenceRule.fit(other, 0, False, LIMITS)
        np.testing.assert_allclose(again[other.place][::-1], found[training.place])

    def test_smooth_tails_go_through_quantiles(self):
        x = np.random.default_rng(0).normal(size=999)
        tail = Tail.of(x, np.ones(999))
        at = np.quantile(x, [1 / 4, 1 / 2, 3 / 4, 7 / 8])
        np.testing.assert_allclose(
            tail.smooth().surprise(at, new=0.0), -np.log([3 / 4, 1 / 2, 1 / 4, 1 / 8]), atol=0.02
        )
        far = np.array([9.0, 20.0])  # where ranks say nothing
        np.testing.assert_allclose(tail.smooth().surprise(far, new=0.0), tail.surprise(far, new=0.0))
        few = Tail.of(np.r_[np.zeros(90), np.ones(10)], np.ones(100)).smooth()
        np.testing.assert_allclose(few.surprise(np.array([0.0, 1.0]), new=0.0), [0.0, np.log(10)])

    def test_more_rows_than_centres(self, monkeypatch):
        monkeypatch.setattr("isopleth.tasks.anomaly.reference_rule.MOST_CENTERS", 50)
        training = TrainingTable.of(table(200))
        rule, found = ReferenceRule.fit(training, 0, False, LIMITS)
        assert [len(space.rows) for space in rule.spaces] == [
            49,
            49,
        ]  # without the fold that new rows are judged without
        again = rule.surprises(training.rows, training.known, LIMITS)
        np.testing.assert_allclose(again, found)

    def test_normal_scores_rise_everywhere_and_ignore_monotone_maps(self):
        x = np.random.default_rng(0).normal(size=(99, 1))
        scores, own = RankedColumns.of(x).normal_scores(np.ones(99))
        grid = np.linspace(-50, 50, 4001)[:, None]
        assert (np.diff(scores(grid)[:, 0]) > 0).all()
        inner = np.sort(x, axis=0)
        np.testing.assert_allclose(scores(inner), norm.ppf((np.arange(99) + 0.5) / 99)[:, None])
        np.testing.assert_allclose(scores(x), own)
        np.testing.assert_allclose(
            RankedColumns.of(np.exp(x)).normal_scores(np.ones(99))[0](np.exp(inner)), scores(inner)
        )

    def test_normal_scores_of_copies_and_without_some_rows(self):
        ranked = RankedColumns.of(np.array([[1.0], [0.0], [2.0], [1.0]]))
        scores, own = ranked.normal_scores(np.array([1.0, 3.0, 0.0, 0.0]))
        np.testing.assert_allclose(scores(np.array([[0.0], [1.0]])), norm.ppf([[3 / 8], [7 / 8]]))
        np.testing.assert_allclose(own, norm.ppf([[7 / 8], [3 / 8]]))
