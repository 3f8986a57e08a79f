"""The layers: one file per type or close family. Importing this package registers them all."""

from layrubnet.layers import (  # noqa: F401
    activations,
    convolution,
    deconvolution,
    inner_product,
    inputs,
    views,
)
