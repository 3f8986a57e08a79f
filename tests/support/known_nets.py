"""Figures of nets as Caffe and the original Layrub train them, counted once by other programs.

MiB except where said. ``layers`` of phase TRAIN, as written and with automatic splits; ``gflop``:
forward, per image, a multiply-add is two; ``total`` and ``layrub`` (with parameters, gradients and
momentum; ``layrub_features`` without) leave out small vectors and batches read ahead.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    layers: int
    with_splits: int
    params: float
    gflop: float
    data: int
    diff: int
    split_diff: int
    internal: int
    columns: int
    three_params: int
    total: int
    layrub: int
    layrub_features: int
    host: int


KNOWN = {
    "AlexNet": Known(24, 24, 232.6, 1.45, 1380, 1229, 0, 594, 17, 698, 3918, 2665, 1951, 1536),
    "CaffeNet": Known(24, 24, 232.6, 1.45, 1025, 874, 0, 239, 17, 698, 2853, 1664, 950, 1181),
    "GoogLeNet": Known(159, 169, 51.0, 3.18, 837, 819, 480, 272, 31, 153, 2592, 1243, 1058, 935),
    "VGG-16": Known(40, 40, 527.8, 30.94, 3720, 3683, 0, 376, 312, 1583, 9675, 4231, 2336, 4546),
    "ResNet-18": Known(93, 101, 44.6, 3.65, 463, 444, 227, 1335, 56, 134, 2659, 876, 686, 1513),
    "ResNet-34": Known(165, 181, 83.2, 7.35, 692, 674, 380, 1948, 99, 250, 4043, 1059, 711, 2240),
    "ResNet-50": Known(
        229, 245, 97.7, 7.72, 2009, 1991, 1372, 5194, 57, 293, 10917, 1526, 1176, 6151
    ),
    "ResNet-101": Known(
        450, 483, 170.3, 15.14, 3051, 3032, 2205, 7693, 86, 511, 16578, 1774, 1176, 9223
    ),
    "ResNet-152": Known(
        671, 721, 230.2, 22.56, 4337, 4318, 3234, 10780, 123, 691, 23483, 1989, 1176, 13017
    ),
    "ResNet-1001": Known(
        4350, 4683, 1282.8, 146.16, 24672, 24653, 19502, 59584, 694, 3848, 132954, 5719, 1176, 73005
    ),
    "ResNet-1172": Known(
        5091, 5481, 1504.0, 171.05, 28592, 28573, 22638, 68992, 805, 4512, 154112, 6493, 1176, 84569
    ),
    "ResNet-1304": Known(
        5663, 6097, 1669.6, 190.27, 31716, 31697, 25137, 76489, 893, 5009, 170941, 7078, 1176, 93784
    ),
    "ResNet-1484": Known(
        6443,
        6937,
        1894.1,
        216.47,
        36003,
        35985,
        28567,
        86779,
        1013,
        5682,
        194029,
        7871,
        1176,
        106433,
    ),
    "ResNet-1505": Known(
        6534,
        7035,
        1917.6,
        219.53,
        36554,
        36536,
        29008,
        88102,
        1029,
        5753,
        196982,
        7958,
        1176,
        108059,
    ),
    "ResNet-1511": Known(
        6560,
        7063,
        1926.1,
        220.40,
        36677,
        36658,
        29106,
        88396,
        1032,
        5778,
        197648,
        7987,
        1176,
        108420,
    ),
    "ResNet-1517": Known(
        6586,
        7091,
        1934.7,
        221.28,
        36799,
        36781,
        29204,
        88690,
        1036,
        5804,
        198314,
        8016,
        1176,
        108782,
    ),
    "WRN-28-10": Known(
        110, 122, 139.2, 10.49, 1830, 1828, 1096, 3952, 72, 418, 9196, 1470, 980, 5020
    ),
    "ResNet-56": Known(260, 287, 3.3, 0.25, 314, 313, 206, 856, 18, 10, 1716, 104, 77, 1005),
}

CHEAP = tuple(name for name, known in KNOWN.items() if known.layers < 1000)
DEEP = tuple(name for name in KNOWN if name not in CHEAP)
