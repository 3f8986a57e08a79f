"""The layers: one file per type or close family. Importing this package registers them all."""

from layrubnet.layers import (  # noqa: F401
    accuracy,
    activations,
    bias,
    convolution,
    data,
    deconvolution,
    eltwise,
    inner_product,
    inputs,
    losses_softmax,
    pooling,
    power,
    prelu,
    scale,
    softmax,
    views,
)
