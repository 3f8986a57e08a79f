"""Collects the layers of a net; every method adds one and returns the name of its top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layrubnet.proto import TEST, TRAIN, LayerParameter, NetParameter

GAUSSIAN_CONV = {"type": "gaussian", "std": 0.01}
XAVIER = {"type": "xavier"}
MSRA = {"type": "msra"}


def constant(value: float) -> dict[str, Any]:
    """A filler that sets everything to ``value``."""
    return {"type": "constant", "value": value}


@dataclass(frozen=True)
class Source:
    """Where images come from: ``Input`` layers unless data bases are named.

    ``train`` and ``test`` are LMDB folders; without ``test`` the net has no data in phase TEST.
    """

    train: str = ""
    test: str = ""


class NetWriter:
    """A net in the making; ``param`` is the result.

    ``weights`` is the filler of every weight. With ``bias`` a number, convolutions have biases
    that start there and learn twice as fast, without decay (Caffe's habit); ``None``: no biases.
    """

    def __init__(self, name: str, *, weights: dict[str, Any], bias: float | None = None) -> None:
        self.param = NetParameter(name=name)
        self.weights = weights
        self.bias = bias

    def add(
        self, kind: str, name: str, *bottoms: str, tops: tuple[str, ...] = (), **fields: Any
    ) -> str:
        """Append a layer of type ``kind``; ``tops`` default to one top with the layer's name."""
        tops = tops or (name,)
        self.param.layer.append(
            LayerParameter(name=name, type=kind, bottom=bottoms, top=tops, **fields)
        )
        return tops[0]

    # -- ends of the net -------------------------------------------------------------------------

    def images(self, source: Source, batch: int, size: int) -> str:
        """The blobs ``data`` (batch x 3 x size x size) and ``label`` (batch)."""
        if source.train:
            for phase, folder in ((TRAIN, source.train), (TEST, source.test)):
                if folder:
                    self._database(phase, folder, batch, size)
            return "data"
        shapes = [{"dim": [batch, 3, size, size]}, {"dim": [batch]}]
        return self.add("Input", "data", tops=("data", "label"), input_param={"shape": shapes})

    def _database(self, phase: int, folder: str, batch: int, size: int) -> None:
        self.add(
            "Data",
            "data",
            tops=("data", "label"),
            include=[{"phase": phase}],
            transform_param={"mirror": phase == TRAIN, "crop_size": size},
            data_param={"source": folder, "batch_size": batch, "backend": "LMDB"},
        )

    def loss(self, scores: str, name: str = "loss", weight: float | None = None) -> str:
        """Softmax and cross entropy with ``label``."""
        given = {} if weight is None else {"loss_weight": [weight]}
        return self.add("SoftmaxWithLoss", name, scores, "label", **given)

    def accuracy(self, scores: str) -> str:
        """How often the largest score is the label's, in phase TEST."""
        return self.add("Accuracy", "accuracy", scores, "label", include=[{"phase": TEST}])

    # -- layers with weights ---------------------------------------------------------------------

    def conv(
        self,
        x: str,
        name: str,
        outputs: int,
        kernel: int,
        *,
        stride: int = 1,
        pad: int = 0,
        group: int = 1,
        bias: float | None = None,
    ) -> str:
        """A square convolution; ``bias`` in place of the net's own."""
        bias = self.bias if bias is None else bias
        shape: dict[str, Any] = {"num_output": outputs, "kernel_size": [kernel]}
        shape |= {"stride": [stride]} if stride != 1 else {}
        shape |= {"pad": [pad]} if pad else {}
        shape |= {"group": group} if group != 1 else {}
        fields = self._learnt(self.weights, bias)
        return self.add("Convolution", name, x, convolution_param=shape | fields, **_rates(bias))

    def fc(
        self,
        x: str,
        name: str,
        outputs: int,
        *,
        weights: dict[str, Any] | None = None,
        bias: float = 0.0,
    ) -> str:
        """A fully connected layer."""
        fields = {"num_output": outputs} | self._learnt(weights or self.weights, bias)
        return self.add("InnerProduct", name, x, inner_product_param=fields, **_rates(bias))

    def _learnt(self, weights: dict[str, Any], bias: float | None) -> dict[str, Any]:
        if bias is None:
            return {"weight_filler": weights, "bias_term": False}
        return {"weight_filler": weights, "bias_filler": constant(bias)}

    # -- in place --------------------------------------------------------------------------------

    def relu(self, x: str, name: str = "") -> str:
        """In place: max(x, 0)."""
        return self.add("ReLU", name or f"{x}_relu", x, tops=(x,))

    def dropout(self, x: str, name: str, ratio: float = 0.5) -> str:
        """In place: drop units in training."""
        return self.add("Dropout", name, x, tops=(x,), dropout_param={"dropout_ratio": ratio})

    def norm(self, x: str, *, relu: bool = False) -> str:
        """In place: BatchNorm, Scale with bias and, if asked for, ReLU."""
        self.add("BatchNorm", f"bn_{x}", x, tops=(x,))
        self.add("Scale", f"scale_{x}", x, tops=(x,), scale_param={"bias_term": True})
        return self.relu(x) if relu else x

    # -- the rest --------------------------------------------------------------------------------

    def max_pool(self, x: str, name: str, kernel: int = 3, *, stride: int = 2, pad: int = 0) -> str:
        """The largest value of each window."""
        fields = {"pool": "MAX", "kernel_size": kernel, "stride": stride}
        return self.add("Pooling", name, x, pooling_param=fields | ({"pad": pad} if pad else {}))

    def average_pool(self, x: str, name: str, kernel: int = 0, *, stride: int = 1) -> str:
        """The mean of each window (of the whole map without ``kernel``)."""
        fields: dict[str, Any] = {"pool": "AVE"}
        fields |= {"kernel_size": kernel, "stride": stride} if kernel else {"global_pooling": True}
        return self.add("Pooling", name, x, pooling_param=fields)

    def lrn(self, x: str, name: str) -> str:
        """Local response normalisation over 5 channels."""
        fields = {"local_size": 5, "alpha": 0.0001, "beta": 0.75}
        return self.add("LRN", name, x, lrn_param=fields)

    def concat(self, name: str, *parts: str) -> str:
        """The channels of all parts."""
        return self.add("Concat", name, *parts)

    def sum(self, name: str, *parts: str) -> str:
        """The elementwise sum."""
        return self.add("Eltwise", name, *parts, eltwise_param={"operation": "SUM"})


def _rates(bias: float | None) -> dict[str, Any]:
    weight = {"lr_mult": 1, "decay_mult": 1}
    return {"param": [weight] if bias is None else [weight, {"lr_mult": 2, "decay_mult": 0}]}
