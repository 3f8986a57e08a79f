"""Solvers through the pycaffe face."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from layrubnet import pycaffe as caffe
from layrubnet.errors import NetError

NET = """
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 8 channels: 1 height: 4 width: 4 } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images whose class is whether the upper half is brighter than the lower."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(count, 1, 4, 4)).astype(np.float32)
    labels = (data[:, 0, :2].sum(axis=(1, 2)) > data[:, 0, 2:].sum(axis=(1, 2))).astype(np.float32)
    return data, labels


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "net.prototxt").write_text(NET)
    solver = tmp_path / "solver.prototxt"
    solver.write_text(
        f'net: "{tmp_path / "net.prototxt"}" base_lr: 0.1 momentum: 0.9 lr_policy: "step"\n'
        "gamma: 0.5 stepsize: 40 max_iter: 60 test_iter: 4 test_interval: 1000 random_seed: 3\n"
        f'test_initialization: false display: 20 snapshot_prefix: "{tmp_path / "snap"}"\n'
    )
    return str(solver)


def ready(file: str) -> caffe.Solver:
    solver = caffe.get_solver(file)
    solver.net.set_input_arrays(*rows(64, 0))
    solver.test_nets[0].set_input_arrays(*rows(32, 1))
    return solver


def test_the_loop_of_the_lenet_tutorial(file: str) -> None:
    solver = ready(file)
    losses, accuracies = [], []
    for iteration in range(50):
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data))
        solver.test_nets[0].forward(start="ip1")
        if iteration % 10 == 9:
            correct = 0
            for _ in range(4):
                solver.test_nets[0].forward()
                guess = solver.test_nets[0].blobs["ip2"].data.argmax(1)
                correct += sum(guess == solver.test_nets[0].blobs["label"].data.ravel())
            accuracies.append(correct / 32)
    assert solver.iter == 50
    assert solver.lr == pytest.approx(0.05)
    assert np.mean(losses[-8:]) < 0.5 * np.mean(losses[:8])
    assert accuracies[-1] > 0.8


def test_a_step_by_hand_is_a_step(file: str) -> None:
    automatic, manual = ready(file), ready(file)
    automatic.step(1)
    manual.net.clear_param_diffs()
    manual.net.forward()
    manual.net.backward()
    manual.apply_update()
    for layer, blobs in automatic.net.params.items():
        for mine, other in zip(blobs, manual.net.params[layer], strict=True):
            np.testing.assert_array_equal(mine.data, other.data)


def test_test_nets_share_parameters_and_only_run_forward(file: str) -> None:
    solver = ready(file)
    solver.net.params["ip1"][0].data[...] = 9
    assert (solver.test_nets[0].params["ip1"][0].data == 9).all()
    with pytest.raises(NetError, match="without backward"):
        solver.test_nets[0].backward()


def test_snapshot_and_restore(file: str) -> None:
    solver = ready(file)
    solver.step(10)
    state = solver.snapshot()
    solver.step(5)
    again = ready(file)
    again.restore(state)
    assert again.iter == 10
    again.step(5)
    for layer, blobs in solver.net.params.items():
        for mine, other in zip(blobs, again.net.params[layer], strict=True):
            np.testing.assert_array_equal(mine.data, other.data)


def test_a_snapshot_of_another_seed_changes_the_nets_that_a_script_holds(file: str) -> None:
    first = ready(file)
    first.step(10)
    state = first.snapshot()
    first.step(5)
    Path(file).write_text(Path(file).read_text().replace("random_seed: 3", "random_seed: 4"))
    again = ready(file)
    net, test_net = again.net, again.test_nets[0]
    again.restore(state)
    again.step(5)
    for layer, blobs in first.net.params.items():
        for mine, other, tested in zip(
            blobs, net.params[layer], test_net.params[layer], strict=True
        ):
            np.testing.assert_array_equal(mine.data, other.data)
            np.testing.assert_array_equal(mine.data, tested.data)


def test_every_blob_is_kept_whatever_the_solver_plans(file: str) -> None:
    Path(file).write_text(Path(file).read_text() + 'memory_param { strategy: "recompute" }')
    solver = ready(file)
    solver.net.forward()
    solver.net.backward()
    assert np.any(solver.net.blobs["ip1"].diff)
    assert solver.test_nets[0].blobs["ip1"].data.shape == (8, 6)


def test_solve_runs_to_the_end_and_logs(file: str, caplog: pytest.LogCaptureFixture) -> None:
    solver = ready(file)
    logger = logging.getLogger("layrubnet")
    logger.addHandler(caplog.handler)
    logger.setLevel(logging.INFO)
    try:
        solver.solve()
    finally:
        logger.removeHandler(caplog.handler)
    assert solver.iter == 60
    assert "Iteration 20" in caplog.text
    assert Path(file).with_name("snap_iter_60.caffemodel").exists()


def test_the_class_names_the_rule(file: str) -> None:
    assert caffe.get_solver(file).param.type == "SGD"
    for name in ("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"):
        text = Path(file).read_text()
        if name not in ("SGD", "Nesterov"):
            text = text.replace("momentum: 0.9", "momentum: 0.9" if "Ada" in name else "")
        if name in ("AdaGrad", "RMSProp"):
            text = text.replace("momentum: 0.9", "")
        Path(file).write_text(text)
        solver = getattr(caffe, f"{name}Solver")(file)
        assert solver.param.type == name
        solver.net.set_input_arrays(*rows(8, 0))
        before = np.array(solver.net.params["ip1"][0].data)
        solver.step(1)
        assert (solver.net.params["ip1"][0].data != before).any()


def test_inputs_of_the_trained_net_may_be_reshaped(tmp_path: Path) -> None:
    inputs = """
layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 8 dim: 1 dim: 4 dim: 4 } shape { dim: 8 } } }"""
    net = inputs + NET[NET.index('layer { name: "ip1"') :]
    (tmp_path / "net.prototxt").write_text(net)
    param = caffe.proto.caffe_pb2.SolverParameter(
        train_net=str(tmp_path / "net.prototxt"), base_lr=0.1, momentum=0.9, lr_policy="fixed"
    )
    solver = caffe.SGDSolver(param)
    for count in (8, 8, 16, 4):
        data, labels = rows(count, count)
        solver.net.blobs["data"].reshape(*data.shape)
        solver.net.blobs["label"].reshape(*labels.shape)
        solver.net.blobs["data"].data[...] = data
        solver.net.blobs["label"].data[...] = labels
        before = np.array(solver.net.params["ip2"][1].data)
        solver.step(1)
        assert solver.net.blobs["ip2"].shape == (count, 2)
        assert (solver.net.params["ip2"][1].data != before).any()
    assert solver.iter == 4


def test_seed_of_the_script(file: str) -> None:
    text = Path(file).read_text().replace("random_seed: 3", "")
    Path(file).write_text(text)

    def weights() -> np.ndarray:
        caffe.set_random_seed(12)
        return np.array(caffe.get_solver(file).net.params["ip1"][0].data)

    np.testing.assert_array_equal(weights(), weights())
