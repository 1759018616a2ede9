"""Names of the classes that a model file may hold: no other class is looked up and no other module is imported for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isopleth.core.errors import listed

# Classes by module, which are part of the file format: a class that moves or is renamed needs another line here, and files of
# earlier versions no longer load. Each is an estimator or a data class, which is created without a call of its constructor.
_CLASSES = {
    "adapters.pyod": "PyODAdapter",
    "adapters.quapy": "QuaPyAdapter",
    "adapters.skchange": "SkchangeAdapter",
    "conditional.cell_judgement": "CellJudgement",
    "conditional.column_laws": "ColumnLaws",
    "conditional.binned_law": "BinnedLaw NumberBins ResidualDensity ScoreMap WordBins",
    "conditional.cell_law": "CellLaw",
    "conditional.estimator": "ConditionalDensity",
    "conditional.forest": "Forest",
    "conditional.inputs": "GapLines Inputs NumberInput Sample WordInput",
    "conditional.kernel_ridge": "KernelRidge",
    "conditional.levels": "LevelLaws Levels TargetLevels",
    "conditional.pseudo_likelihood": "ColumnShares PseudoLikelihood",
    "conditional.ridge": "Ridge",
    "conditional.number_law": "EqualLaw Group NumberLaw ScoreTable",
    "conditional.word_law": "Logistic WordLaw",
    "conditional.word_means": "WordMeans",
    "core.budget": "Budget",
    "core.interval_cells": "Coarsening IntervalCells",
    "core.censored_regression": "CensoredRegression Transform TransformedLine",
    "core.interval_laws": "IntervalPoints PowerNormal",
    "core.laws": "EmpiricalLaw RankScores",
    "context.residuals": "RankRegression",
    "context.indexed_ranks": "ContextIndex IndexedRanks",
    "context.ranks": "ContextRanks",
    "core.rows": "Rounding RunningFolds",
    "core.tails": "Tail",
    "core.scales": "ScaledColumns",
    "density.candidates": "Recipe Unchanged",
    "density.choices": "Choices",
    "density.column_density": "ColumnDensity",
    "density.coordinates": "ColumnCoordinates",
    "density.debias": "SharpenedSolver",
    "density.feature_sosrep": "FeatureDensity FeatureSolver RandomFeatureSOSREP",
    "density.fitted": "FitRows Fitted",
    "density.fitting": "CellRecipe",
    "density.frame_density": "ExpansionDensity",
    "conditional.imputer": "DensityImputer KnownRange",
    "conditional.exact": "ExactCells",
    "density.kde": "KDE",
    "density.normal_mixture": "NormalMixture",
    "density.search": "Search",
    "density.solver": "MixtureSolver RootSolver",
    "density.sosrep": "SOSREP",
    "density.stack": "Component StackDensity",
    "difference.coordinates": "BalancedColumns",
    "difference.cross_validation": "DifferenceSearchPath FoldSums",
    "difference.fitted": "FittedDifference SquaredL2Law",
    "difference.gaussian_system": "GaussianSystem",
    "difference.kde_difference": "KDEDifference",
    "difference.lsdd": "Decisions LSDD",
    "difference.statistics": "DifferenceStatistics Moments SampleSums",
    "expansion": "KernelExpansion",
    "frames.bounded": "BoundedMap BoundedMarginalMap",
    "frames.compose": "Compose ComposedMap Gaussianize",
    "frames.linear": "LinearMap LocalScale Scale ScaleMap Whiten",
    "frames.marginal": "Marginal MarginalMap",
    "frames.sinh_arcsinh": "SinhArcsinh SinhArcsinhMap",
    "kernels.gaussian": "Gaussian",
    "kernels.matern": "Laplacian Matern",
    "operators.features": "GaussianFeatures LaplaceFeatures RandomFeatures",
    "kernels.product": "ColumnKernel GaussianFactor LaplacianFactor ProductLaplacian",
    "kernels.rational_quadratic": "IMQ RationalQuadratic",
    "kernels.sobolev": "SDO Sobolev",
    "score.field": "GaussianBase",
    "score.kernel_score": "KernelScore",
    "score.nystrom": "NystromKEF",
    "score.presets": "KEF Landweber NuMethod SSGE Stein",
    "score.ridge_selection": "NystromFolds RidgePath",
    "score.selection": "SelectionPath",
    "score.spaces": "CurlFree Diagonal",
    "score.statistics": "NystromStatistics",
    "solvers.regularizers": "LandweberIteration NuIteration SpectralCutoff Tikhonov",
    "tables.elapsed": "Elapsed",
    "tables.proportions": "Proportion",
    "tables.relations": "Relation",
    "tables.sums": "Sum",
    "tables.unread": "UnreadCells",
    "tables.kinds": "Column",
    "tables.row_encoding": "NumberEncoding RowEncoding WordEncoding",
    "tables.schema": "Schema",
    "tables.numerals": "Numerals",
    "tasks.anomaly.certificate": "SplitScores",
    "tasks.anomaly.covariance": "CovarianceEvidence Indicators",
    "tasks.anomaly.detector": "AnomalyDetector",
    "tasks.anomaly.new_values": "ColumnValues NewValues",
    "tasks.anomaly.pooled_rule": "CategoryShares ColumnTails Committee Member PooledRule",
    "tasks.anomaly.reasons": "Reasons",
    "tasks.anomaly.reference_rule": "CenterSpace Centers Conditionals NormalScores ReferenceRule",
    "tasks.anomaly.training_table": "CategoryColumns RowIndex WithConstants",
    "tasks.changes.detector": "ChangePointDetector",
    "tasks.changes.result": "ChangePoints",
    "tasks.cellwise.detector": "CellwiseDetector",
    "tasks.cellwise.bounds": "CellBounds",
    "tasks.cellwise.evidence": "CellEvidence",
    "tasks.cellwise.mistakes": "FoundMistakes Mistake",
    "tasks.cellwise.model": "CellModel",
    "tasks.cellwise.word_forms": "WordForms",
    "tables.rules": "AddsUp Determines Equation FoundRule InOrder NotNegative NotZero OneOf Times Whole Words",
    "tasks.class_prior.estimator": "ClassPriorEstimator",
    "tasks.class_prior.shares": "Calibrator",
    "tasks.classifier": "Fits SpanFeatures",
    "tasks.column_changes": "ColumnSummary",
    "tasks.drift.alarms": "ReferenceColumns",
    "tasks.drift.anytime": "AnytimeDriftMonitor AnytimeState",
    "tasks.drift.calibration": "DriftFeatures",
    "tasks.drift.cause_state": "CauseState Evidence IncidentState",
    "tasks.drift.causes": "NullModel",
    "tasks.drift.open_causes": "Cause",
    "tasks.drift.page": "Page",
    "tasks.drift.stream_rows": "StreamRows",
    "tasks.drift.in_context": "ContextColumns WatchInContext",
    "tasks.drift.monitor": "DriftMonitor",
    "tasks.drift.reference_context": "ReferenceResiduals",
    "tasks.drift.stream_times": "ClockState StreamClock",
    "tasks.drift.window_features": "WindowFeatures",
    "tasks.drift.window_sums": "DriftState",
}
# Exact names; a file is only ever compared with them.
REGISTERED = frozenset(f"isopleth.{module}.{name}" for module, names in _CLASSES.items() for name in names.split())

# What scikit-learn's encoders, imputers and column transformers hold and skops does not trust itself: data of fixed form.
_OTHERS = frozenset(
    {
        "builtins.object",
        "numpy.dtype",
        "numpy.number",
        "sklearn.compose._column_transformer.make_column_selector",
    }
)
# More names than this are not listed in one sentence, and longer ones are cut.
_MANY, _LONG = 8, 100


def is_registered(kind: type) -> bool:
    """Tell whether a class of this library is one whose objects a file may hold."""
    return f"{kind.__module__}.{kind.__qualname__}" in REGISTERED


def trusted_types(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split names of types into those that may be loaded and others: by comparison only, whatever a file calls itself."""
    known, others = REGISTERED | _OTHERS, list(names)
    return [name for name in others if name in known], [name for name in others if name not in known]


def listed_types(names: Sequence[str]) -> str:
    """Return names for a sentence, escaped and shortened, because a hostile file may hold many or long ones."""
    plain = [name.encode("unicode_escape").decode("ascii") for name in names[: _MANY + 1]]
    plain += [""] * (len(names) - len(plain))
    return listed([name if len(name) <= _LONG else name[: _LONG - 3] + "..." for name in plain], _MANY)
