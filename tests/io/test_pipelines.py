"""Files of pipelines: what scikit-learn's encoders, imputers and column transformers hold comes back without running code."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from isopleth import KDE, InputError
from isopleth.io import load, save

TABLE = pd.DataFrame({"a": np.arange(1.0, 41.0) ** 2, "b": ["x", "y", "y", "z"] * 10}).astype({"b": object})
GAPS = TABLE.mask(TABLE["a"].isin([4.0, 25.0]))
CODES = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)


@pytest.mark.parametrize(
    ("step", "table"),
    [
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), TABLE[["b"]]),
        (CODES, TABLE),
        (SimpleImputer(add_indicator=True), GAPS[["a"]]),
        (SimpleImputer(strategy="most_frequent"), GAPS),
        (ColumnTransformer([("a", StandardScaler(), make_column_selector(pattern="a"))], remainder=CODES), TABLE),
        (
            ColumnTransformer(
                [
                    ("numbers", SimpleImputer(), make_column_selector(dtype_include=np.number)),
                    ("words", CODES, make_column_selector(dtype_include=object)),
                ]
            ),
            GAPS,
        ),
        (FunctionTransformer(np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one"), TABLE[["a"]]),
        (FunctionTransformer(special.cbrt), TABLE[["a"]]),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_step_comes_back(step, table, tmp_path):
    fitted = step.fit(table)
    save(fitted, tmp_path / "step.isopleth")
    found, expected = load(tmp_path / "step.isopleth").transform(table), fitted.transform(table)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected))


def test_a_pipeline_with_a_density_comes_back(tmp_path):
    kinds = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), FunctionTransformer(np.log1p)), make_column_selector("a")),
            ("words", OneHotEncoder(sparse_output=False), make_column_selector(dtype_include=object)),
        ]
    )
    model = make_pipeline(kinds, KDE()).fit(TABLE)
    save(model, tmp_path / "model.isopleth")
    np.testing.assert_array_equal(load(tmp_path / "model.isopleth").score_samples(TABLE), model.score_samples(TABLE))


def test_other_functions_are_refused_by_name(tmp_path):
    for function, name in ((np.nan_to_num, "numpy.nan_to_num"), (eval, "builtins.eval"), (np.load, "numpy.load")):
        with pytest.raises(InputError, match=name):
            save(FunctionTransformer(function), tmp_path / "step.isopleth")
    assert not list(tmp_path.iterdir())
