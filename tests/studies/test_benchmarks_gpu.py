"""The command that measures on a GPU: its logic, on the processor."""

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not beside an installed package")
torch = pytest.importorskip("torch")

from benchmarks import gpu, gpu_products  # noqa: E402


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_it_says_so_and_nothing_else(tmp_path, capsys):
    gpu.main(["--out", str(tmp_path / "results.txt")])
    assert capsys.readouterr().out == "not measured: no CUDA device\n"
    assert (tmp_path / "results.txt").read_text() == "| not measured: no CUDA device\n"


@pytest.mark.slow
def test_each_part_measures_and_holds_against_literal_sums():
    head, (single, double, two_sets, fit, scores, entropy) = gpu.measured("cpu", quick=True)
    assert "Quick run" in head[-1]
    everything = ("isopleth", "isopleth, two sets of points", "torch, whole matrix", "torch, differences (b, m, d)")
    for table, names, allowed in (
        (single, everything, 1e-6),
        (double, everything, 1e-14),
        (two_sets, everything[1:2], 1e-6),
    ):
        told = {row[0]: row for row in table.rows}
        for name in names:
            assert float(told[name][4]) < allowed
            assert float(told[name][2]) > 0.0
            assert float(told[name][3]) > 0.0
    assert float(fit.rows[0][3]) <= 1e-6
    assert float(fit.rows[0][4]) <= 2e-6
    assert float(scores.rows[0][2]) < 1e-9
    assert [float(row[2]) < 1e-3 for row in entropy.rows] == [True, True]


def test_a_program_that_fails_is_reported_and_the_others_go_on(monkeypatch):
    def fails(problem):
        raise MemoryError("149 GiB wanted, 130 GiB free")

    monkeypatch.setattr(gpu_products, "PROGRAMS", {"one": fails, "isopleth": gpu_products.operator})
    rows = gpu.products(gpu.QUICK, torch.device("cpu"))[0].rows
    assert rows[1][:2] == ["one", "MemoryError: 149 GiB wanted, 130 GiB free"]
    assert float(rows[2][4]) < 1e-6
