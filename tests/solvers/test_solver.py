"""The training loop: order of things, micro-batches, tests, requests, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layrubnet.errors import NonFiniteError, PrototxtError
from layrubnet.memory.options import MemoryOptions
from layrubnet.observe.observer import Observer
from layrubnet.observe.signals import Action
from layrubnet.solvers.solver import Solver
from tests.solvers.support import ROWS, linear_net, make_solver, rows_layer, weights_of

BASE = 'lr_policy: "fixed" base_lr: 0.05 '
TESTED = "test_iter: 2 test_interval: 2 "


def in_folder(path: Path, text: str = BASE) -> str:
    """The solver text with snapshots going into ``path``."""
    return f'{text} snapshot_prefix: "{path}/s"'


def test_it_learns() -> None:
    solver, recorder = make_solver(BASE + "momentum: 0.9")
    solver.step(200)
    assert recorder.losses[0] > 0.5
    assert recorder.losses[-1] < 1e-3
    np.testing.assert_allclose(solver.net.get_blob("ip", 0), [[1, -2, 0.5]], atol=0.05)


def test_two_micro_batches_equal_one_of_twice_the_size() -> None:
    one, _ = make_solver(BASE + "momentum: 0.9 weight_decay: 0.01", linear_net(batch=8))
    two, recorder = make_solver(
        BASE + "momentum: 0.9 weight_decay: 0.01 iter_size: 2", linear_net(batch=4)
    )
    one.step(5)
    two.step(5)
    for name, values in weights_of(one).items():
        np.testing.assert_allclose(weights_of(two)[name], values, rtol=1e-4, atol=1e-6)
    assert len(recorder.losses) == 5


@pytest.mark.parametrize("strategy", ["caffe", "reuse", "recompute", "hybrid", "min", "auto"])
def test_a_net_whose_parameters_are_all_frozen_runs(strategy: str) -> None:
    frozen = "param { lr_mult: 0 } param { lr_mult: 0 } inner_product_param {"
    net = linear_net().replace("inner_product_param {", frozen)
    solver, recorder = make_solver(BASE, net, memory=MemoryOptions(strategy))
    before = weights_of(solver)
    solver.step(3)
    assert solver.iter == 3
    assert min(recorder.losses) > 0
    for name, values in weights_of(solver).items():
        np.testing.assert_array_equal(values, before[name])


def test_a_test_net_holds_no_gradients() -> None:
    solver, _ = make_solver(BASE + TESTED)
    (net,) = solver.test_nets
    assert {b.kind for b in solver.net.program.buffers.values()} >= {"diff", "param_diff"}
    assert not {b.kind for b in net.program.buffers.values()} & {"diff", "param_diff"}


def test_a_run_repeats_bit_for_bit() -> None:
    runs = []
    for _ in range(2):
        solver, _ = make_solver(BASE)
        solver.step(7)
        runs.append(weights_of(solver))
    for name in runs[0]:
        assert runs[0][name].tobytes() == runs[1][name].tobytes()


def test_seed() -> None:
    fixed, _ = make_solver(BASE + "random_seed: 5", seed=None)
    assert fixed.seed == 5
    drawn, recorder = make_solver(BASE, seed=None)
    assert any(str(drawn.seed) in text for text in recorder.notes)


def test_display_and_smoothed_loss() -> None:
    solver, recorder = make_solver(BASE + "display: 2 average_loss: 3")
    solver.step(5)
    assert [r.iteration for r in recorder.trains] == [0, 2, 4]
    assert recorder.trains[2].loss == pytest.approx(np.mean(recorder.losses[2:5]))
    report = recorder.trains[1]
    assert (report.outputs[0].name, report.outputs[0].weight) == ("loss", 1.0)
    assert report.outputs[0].value == pytest.approx(recorder.losses[2])
    assert report.lr == pytest.approx(0.05)
    assert report.rate > 0


def test_tests_run_before_the_iteration_and_share_weights() -> None:
    solver, recorder = make_solver(BASE + TESTED + "test_compute_loss: true")
    solver.step(5)
    assert [r.iteration for r in recorder.tests] == [0, 2, 4]
    mean = recorder.tests[0]
    assert mean.loss == pytest.approx(mean.outputs[0].value)
    assert recorder.tests[2].outputs[0].value < mean.outputs[0].value
    assert np.shares_memory(solver.net.param_data("ip/0"), solver.test_nets[0].param_data("ip/0"))


def test_test_value_is_the_mean_over_test_iter() -> None:
    solver, recorder = make_solver(BASE + TESTED)
    solver.test_all()
    net = solver.test_nets[0]
    net.data_nodes()[0].layer.seek({"row": 0})
    losses = [net.forward(), net.forward()]
    assert recorder.tests[0].outputs[0].value == pytest.approx(np.mean(losses))


def test_no_test_at_the_start() -> None:
    solver, recorder = make_solver(BASE + TESTED + "test_initialization: false")
    solver.step(3)
    assert [r.iteration for r in recorder.tests] == [2]


def test_solve_ends_with_snapshot_look_and_tests(tmp_path: Path) -> None:
    solver, recorder = make_solver(in_folder(tmp_path, BASE + TESTED + "max_iter: 4 display: 2"))
    solver.solve()
    assert [r.iteration for r in recorder.snapshots] == [4]
    assert [r.iteration for r in recorder.tests] == [0, 2, 4]


def test_final_snapshot_is_not_written_twice(tmp_path: Path) -> None:
    solver, recorder = make_solver(in_folder(tmp_path, BASE + "max_iter: 4 snapshot: 2"))
    solver.solve()
    assert [r.iteration for r in recorder.snapshots] == [2, 4]


def test_no_final_snapshot_on_request(tmp_path: Path) -> None:
    text = in_folder(tmp_path, BASE + "max_iter: 2 snapshot_after_train: false")
    solver, recorder = make_solver(text)
    solver.solve()
    assert recorder.snapshots == []


class Requests:
    """Asks for actions at given calls."""

    def __init__(self, *actions: Action) -> None:
        self.actions = list(actions)

    def __call__(self) -> Action:
        return self.actions.pop(0) if self.actions else Action.NONE


def test_stop_and_snapshot_requests(tmp_path: Path) -> None:
    text = in_folder(tmp_path, BASE + "max_iter: 10")
    requests = Requests(Action.NONE, Action.SNAPSHOT, Action.STOP)
    solver, recorder = make_solver(text, requests=requests)
    solver.solve()
    assert solver.stopped
    assert solver.iter == 3
    assert [r.iteration for r in recorder.snapshots] == [2, 3]


def test_requests_during_a_test(tmp_path: Path) -> None:
    text = in_folder(tmp_path, BASE + TESTED + "max_iter: 10")
    solver, recorder = make_solver(text, requests=Requests(Action.SNAPSHOT, Action.STOP))
    solver.solve()
    assert solver.iter == 0
    assert recorder.tests == []
    assert "Test interrupted." in recorder.notes
    assert [r.iteration for r in recorder.snapshots] == [0]


def test_unwritable_prefix_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    solver, recorder = make_solver(f'{BASE} max_iter: 2 snapshot_prefix: "{tmp_path}/file/sub/s"')
    with pytest.raises(Exception, match="Cannot write to snapshot prefix"):
        solver.solve()
    assert recorder.losses == []


def test_max_iter_is_needed() -> None:
    solver, _ = make_solver(BASE)
    with pytest.raises(PrototxtError, match="max_iter"):
        solver.solve()


def bad_net(key: str, bad: float) -> str:
    net = linear_net(key)
    ROWS[key][0][5, 1] = bad
    return net


def test_nan_loss_names_the_first_layer() -> None:
    solver, _ = make_solver(BASE, bad_net("nan", np.nan))
    with pytest.raises(NonFiniteError) as caught:
        solver.step(5)
    assert "iteration 1" in str(caught.value)
    assert "layer 'data'" in str(caught.value)
    assert "1 NaN" in str(caught.value)


def test_divergence_names_layer_and_parameter() -> None:
    solver, _ = make_solver('lr_policy: "fixed" base_lr: 1e20')
    with pytest.raises(NonFiniteError) as caught:
        solver.step(5)
    assert "'ip'" in str(caught.value) or "'loss'" in str(caught.value)
    assert "base_lr" in str(caught.value)


def test_check_finite_stops_at_the_instruction() -> None:
    net = linear_net().replace('top: "y"', 'top: "y" param { lr_mult: 1000 }')
    solver, _ = make_solver('lr_policy: "fixed" base_lr: 1e38 check_finite: true', net)
    with pytest.raises(NonFiniteError) as caught:
        solver.step(5)
    assert "after the instruction" in str(caught.value)
    assert "iteration 0" in str(caught.value)
    assert "parameter 'ip/0'" in str(caught.value)


def test_floor_of_softmax_is_recognised() -> None:
    x = np.array([[1000.0, 0.0]], np.float32)
    ROWS["floor"] = (x, np.array([1.0], np.float32))
    net = rows_layer("floor", 1) + (
        'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param {'
        " num_output: 2 bias_term: false } }"
        'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" top: "loss" }'
    )
    solver, recorder = make_solver('lr_policy: "fixed" base_lr: 0', net)
    solver.net.set_blob("ip", 0, [[1, 0], [0, 0]])
    solver.step(3)
    assert len(recorder.warnings) == 1
    assert "87.3365" in recorder.warnings[0]


def test_debug_info_lines() -> None:
    solver, recorder = make_solver(BASE + "display: 2 debug_info: true")
    solver.step(2)
    lines = [text for text in recorder.notes if text.startswith("    [")]
    assert [line.split(",")[0] for line in lines] == [
        "    [Forward] Layer data",
        "    [Forward] Layer data",
        "    [Forward] Layer ip",
        "    [Forward] Layer ip",
        "    [Forward] Layer ip",
        "    [Forward] Layer loss",
        "    [Backward] Layer loss",
        "    [Backward] Layer ip",
        "    [Backward] Layer ip",
        "    [Update] Layer ip",
        "    [Update] Layer ip",
    ]
    x = np.abs(ROWS["linear"][0][:4]).mean()
    assert lines[0] == f"    [Forward] Layer data, top blob x data: {x:g}"


def test_observers_may_stop_nothing_but_see_everything() -> None:
    class Counter(Observer):
        count = 0

        def iterated(self, iteration: int, loss: float) -> None:
            self.count += 1

    counter = Counter()
    solver, _ = make_solver(BASE)
    solver.observers.all.append(counter)
    solver.step(3)
    assert counter.count == 3


def test_lr_mult_zero_stays(tmp_path: Path) -> None:
    net = linear_net().replace('top: "y"', 'top: "y" param { lr_mult: 0 } param { lr_mult: 1 }')
    solver, _ = make_solver(in_folder(tmp_path), net)
    before = weights_of(solver)
    solver.step(3)
    after = weights_of(solver)
    assert (before["ip/0"] == after["ip/0"]).all()
    assert (before["ip/1"] != after["ip/1"]).any()
    solver.snapshot()
    other, _ = make_solver(in_folder(tmp_path), net)
    other.restore(tmp_path / "s_iter_3.solverstate")
    assert isinstance(other, Solver)
    assert (weights_of(other)["ip/1"] == after["ip/1"]).all()
