"""Small nets for the tests of the pycaffe face."""

from __future__ import annotations

LENET = """
name: "small_lenet"
layer { name: "data" type: "Input" top: "data" top: "label" include { phase: TRAIN }
  input_param { shape { dim: 4 dim: 1 dim: 8 dim: 8 } shape { dim: 4 } } }
layer { name: "data" type: "Input" top: "data" include { phase: TEST }
  input_param { shape { dim: 2 dim: 1 dim: 8 dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss"
  include { phase: TRAIN } }
layer { name: "prob" type: "Softmax" bottom: "ip2" top: "prob" include { phase: TEST } }
"""

FULLY_CONVOLUTIONAL = """
force_backward: true
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 2 dim: 1 dim: 8 dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "fc-conv" type: "Convolution" bottom: "pool1" top: "fc"
  convolution_param { num_output: 5 kernel_size: 3 } }
"""

# Backward of Scale reads what Power overwrites by name: "y" has several versions.
IN_PLACE = """
force_backward: true
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "double" type: "Power" bottom: "x" top: "y" power_param { scale: 2 } }
layer { name: "scale" type: "Scale" bottom: "y" top: "y"
  scale_param { filler { type: "constant" value: 5 } } }
layer { name: "shift" type: "Power" bottom: "y" top: "y" power_param { scale: 3 } }
layer { name: "out" type: "Power" bottom: "y" top: "z" power_param { shift: 1 } }
"""
