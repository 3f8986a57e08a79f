"""The native Python face."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import layrubnet
from layrubnet.errors import LayrubError, NetError
from tests.pycaffe.nets import FULLY_CONVOLUTIONAL, LENET


def test_forward_returns_new_arrays_and_takes_any_batch() -> None:
    net = layrubnet.Net(LENET, seed=1)
    assert (net.inputs, net.outputs) == (["data"], ["prob"])
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 1, 8, 8))
    five = net.forward(data=rows)["prob"]
    assert five.shape == (5, 3)
    one = net.forward(data=rows[3:4])["prob"]
    np.testing.assert_allclose(one[0], five[3], rtol=1e-5)
    assert net.blobs["ip1"].shape == (1, 5)
    with pytest.raises(NetError, match="did you mean 'data'"):
        net.forward(dta=rows)


def test_backward_gives_the_gradients_of_this_pass() -> None:
    net = layrubnet.Net(FULLY_CONVOLUTIONAL, seed=2)
    image = np.random.default_rng(1).normal(size=(1, 1, 8, 8))
    net.forward(data=image)
    seed = np.ones((1, 5, 1, 1))
    first = net.backward(fc=seed)["data"]
    again = net.backward(fc=seed)["data"]
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(net.param_diffs["fc-conv"][1], np.ones(5))
    assert net.diffs["conv1"].shape == (1, 3, 6, 6)


def test_loss_and_params() -> None:
    net = layrubnet.Net(LENET, "TRAIN", seed=3)
    net.params["ip2"][0][...] = 0
    outputs = net.forward(data=np.zeros((4, 1, 8, 8)), label=np.zeros(4))
    assert net.loss == pytest.approx(np.log(3), abs=1e-5)
    assert outputs["loss"] == pytest.approx(net.loss)
    with pytest.raises(NetError, match="TRAIN"):
        layrubnet.Net(LENET, "train")


def test_save_and_load(tmp_path: Path) -> None:
    first, second = layrubnet.Net(LENET, seed=4), layrubnet.Net(LENET, seed=5)
    path = tmp_path / "w.caffemodel"
    first.save(path)
    report = second.load(path)
    assert report.copied == ["conv1", "ip1", "ip2"]
    third = layrubnet.Net(LENET, weights=path)
    for net in (second, third):
        np.testing.assert_array_equal(net.params["ip1"][0], first.params["ip1"][0])
    third.close()


def test_the_same_seed_gives_the_same_net() -> None:
    first, second = layrubnet.Net(LENET, seed=6), layrubnet.Net(LENET, seed=6)
    np.testing.assert_array_equal(first.params["ip1"][0], second.params["ip1"][0])


@pytest.mark.parametrize("strategy", ["reuse", "hybrid", "min", "auto"])
def test_a_planned_net_steps_to_the_same_gradients(strategy: str) -> None:
    feed = {"data": np.linspace(-1, 1, 4 * 64).reshape(4, 1, 8, 8), "label": np.arange(4) % 3}
    plain = layrubnet.Net(LENET, "TRAIN", seed=3)
    planned = layrubnet.Net(LENET, "TRAIN", seed=3, memory=strategy, keep=["ip1"])
    outputs = [net.step(**feed) for net in (plain, planned)]
    assert outputs[0] == outputs[1]
    for layer, gradients in plain.param_diffs.items():
        for mine, other in zip(gradients, planned.param_diffs[layer], strict=True):
            np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(plain.blobs["ip1"], planned.blobs["ip1"])
    assert "conv1" in plain.blobs
    assert "conv1" not in planned.blobs
    with pytest.raises(NetError, match="backward alone needs feature maps that are not kept"):
        planned.backward()
    planned.close()


def test_a_planned_net_gets_a_new_plan_for_a_new_batch_size(
    caplog: pytest.LogCaptureFixture,
) -> None:
    planned = layrubnet.Net(LENET, "TRAIN", seed=3, memory="reuse")
    plain = layrubnet.Net(LENET, "TRAIN", seed=3)
    caplog.set_level("INFO", "layrubnet")
    feed = {"data": np.ones((7, 1, 8, 8)), "label": np.zeros(7)}
    assert planned.step(**feed) == plain.step(**feed)
    assert "new memory plan for new input shapes" in caplog.text


def test_a_budget_is_kept_or_refused() -> None:
    net = layrubnet.Net(LENET, "TRAIN", memory_budget="16MiB")
    assert net._live.net.plan.nbytes <= 16 * 2**20
    with pytest.raises(LayrubError, match="cannot be trained in this much memory"):
        layrubnet.Net(LENET, "TRAIN", memory_budget="100KB")


def test_solver_from_file_and_message(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(LENET)
    file = tmp_path / "solver.prototxt"
    file.write_text('net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" random_seed: 1')
    from_file = layrubnet.Solver(file)
    param = layrubnet.proto.SolverParameter()
    param.CopyFrom(from_file.param)
    from_message = layrubnet.Solver(param, solver_file=file)
    for solver in (from_file, from_message):
        solver.net.data("data")[...] = 1
        solver.step(2)
        assert solver.iter == 2
    np.testing.assert_array_equal(
        from_file.net.get_blob("ip1", 0), from_message.net.get_blob("ip1", 0)
    )


@pytest.mark.parametrize("asked", [{"memory": "min"}, {"memory_budget": "16MiB"}])
def test_solver_takes_a_memory_plan_by_name(tmp_path: Path, asked: dict[str, str]) -> None:
    (tmp_path / "net.prototxt").write_text(LENET)
    file = tmp_path / "solver.prototxt"
    file.write_text('net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" random_seed: 1')
    solver = layrubnet.Solver(file, **asked)
    assert solver.net.plan.strategy == asked.get("memory", "auto")


def test_a_gradient_of_another_shape_is_refused() -> None:
    net = layrubnet.Net(LENET, "TRAIN", seed=3)
    net.forward()
    with pytest.raises(LayrubError, match="gradient of blob 'loss' has another shape"):
        net.backward(loss=np.zeros(2))


def test_everything_public_is_there() -> None:
    for name in layrubnet.__all__:
        assert getattr(layrubnet, name) is not None
        assert name in dir(layrubnet)
    with pytest.raises(AttributeError, match="no attribute 'nett'"):
        _ = layrubnet.nett


def test_import_is_cheap() -> None:
    code = "import sys, layrubnet; print(layrubnet.__version__, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [layrubnet.__version__, "False"]
