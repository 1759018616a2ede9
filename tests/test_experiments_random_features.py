"""The experiment on random features."""

from experiments.random_features import CASES, main


def test_the_table(tmp_path, capsys):
    main(["--quick", "--exact", "--out", str(tmp_path / "table.txt")])
    lines = (tmp_path / "table.txt").read_text().splitlines()
    assert lines == capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(CASES)
