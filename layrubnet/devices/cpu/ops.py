"""All operations of the CPU device, family by family (one file each)."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.activation import ActivationOps
from layrubnet.devices.cpu.batch_norm import BatchNormOps
from layrubnet.devices.cpu.channel import ChannelOps
from layrubnet.devices.cpu.columns import ColumnOps
from layrubnet.devices.cpu.convolution_ops import ConvolutionOps
from layrubnet.devices.cpu.crop import CropOps
from layrubnet.devices.cpu.dropout import DropoutOps
from layrubnet.devices.cpu.elementwise import ElementwiseOps
from layrubnet.devices.cpu.gemm import GemmOps
from layrubnet.devices.cpu.losses import LossOps
from layrubnet.devices.cpu.lrn import LrnOps
from layrubnet.devices.cpu.pooling_ops import FastPoolingOps
from layrubnet.devices.cpu.softmax import SoftmaxOps
from layrubnet.devices.cpu.update import UpdateOps
from layrubnet.devices.scratch import ScratchAllocator


class CpuOps(
    ActivationOps,
    BatchNormOps,
    ChannelOps,
    ColumnOps,
    ConvolutionOps,
    CropOps,
    DropoutOps,
    ElementwiseOps,
    GemmOps,
    LossOps,
    LrnOps,
    FastPoolingOps,
    SoftmaxOps,
    UpdateOps,
):
    """The mathematics of the CPU device; ``xp`` is the array library custom layers may use."""

    BASE_SCRATCH = 512 * 1024
    """Bytes each instruction may use without declaring them: block temporaries."""

    xp = np

    def __init__(self) -> None:
        super().__init__()
        self.scratch = ScratchAllocator()
