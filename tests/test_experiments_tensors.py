"""The experiment on tensors."""

import pytest
from experiments.tensors import CASES, main


def test_the_table(tmp_path, capsys):
    pytest.importorskip("torch")
    main(["--quick", "--out", str(tmp_path / "table.txt")])
    lines = (tmp_path / "table.txt").read_text().splitlines()
    assert lines == capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(CASES)
    for line in lines[2:]:
        assert float(line.split()[-1]) < 1e-9
        assert float(line.split()[-2]) > 0.0
