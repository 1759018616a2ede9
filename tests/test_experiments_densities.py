"""The study of densities on real tables."""

import numpy as np
import pandas as pd
from experiments import density_tables


def test_tables_keep_continuous_columns_of_complete_rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 200
    x = rng.normal(size=(n, 2))
    columns = {
        "a": x[:, 0],
        "copy": 3 * x[:, 0] + 1,
        "counts": rng.integers(9, size=n),
        "b": x[:, 1],
        "c": rng.normal(size=n),
    }
    table = pd.DataFrame(columns).assign(target=["yes"] * n)
    table.loc[:9, "b"] = np.nan
    table.loc[5:, "c"] = np.nan
    (tmp_path / "mixed").mkdir()
    (tmp_path / "oddbench").mkdir()
    table.to_csv(tmp_path / "mixed" / "numbers.csv", index=False)
    table[["a", "target"]].to_csv(tmp_path / "mixed" / "one.csv", index=False)
    np.savez(tmp_path / "oddbench" / "Parts.npz", train=x[:150].astype("float32"), test=x[150:].astype("float32"))
    found = density_tables.find_tables(tmp_path)
    tables = {name: density_tables.read_table(name, path) for name, path in found.items()}
    assert tables["mixed/one"] is None
    numbers = tables["mixed/numbers"].X
    assert sorted(map(tuple, numbers)) == sorted(map(tuple, x[10:]))
    assert not (numbers == x[10:]).all()
    assert tables["oddbench/Parts"].X.shape == (n, 2)


def test_halves_depend_on_the_name_alone():
    names = [f"folder/{i}" for i in range(1000)]
    assert 400 < sum(map(density_tables.is_reported, names)) < 600
    assert density_tables.is_reported("adbench/37_Stamps")
    assert not density_tables.is_reported("adbench/14_glass")
