"""The layers: one file per type or close family. Importing this package registers them all."""

from layrubnet.layers import activations, inner_product, inputs, views  # noqa: F401
