"""Field names of Caffe's forks: where a field that we do not read comes from, and which of those
that we do read (they have numbers from 10000 up) a net makes use of."""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from typing import Any

FIRST_FORK_NUMBER = 10000
FIRST_OWN_NUMBER = 20000

_FIELDS_BY_FORK = {
    "SSD (weiliu89/caffe)": (
        "annotated_data_param detection_evaluate_param video_data_param batch_sampler "
        "label_map_file anno_type emit_constraint noise_param eval_type "
        "ap_version show_per_class_result"
    ),
    "NVIDIA/caffe": (
        "forward_type backward_type forward_math backward_math cudnn_math_override "
        "default_forward_type default_backward_type default_forward_math default_backward_math "
        "solver_data_type use_gpu_transform img_rand_resize_lower img_rand_resize_upper "
        "store_blobs_in_old_format global_grad_scale conv_algos_override "
        "detectnet_groundtruth_param detectnet_augmentation_param debug"
    ),
    "happynear/caffe-windows": (
        "local_param insanity_param eltwise_affine_param sub_region_param noise_param "
        "clamp_weights_lower clamp_weights_upper clip_weights erase_ratio "
        "label_specific_add_param margin_inner_product_param large_margin_inner_product_param"
    ),
    "yjxiong/caffe": (
        "multi_scale scale_ratios fix_crop more_fix_crop max_distort is_flow video_data_param"
    ),
    "several forks": (
        "fixed_crop multi_crop mirror_vertical crop_size_l cpm_transform_param reorg_param "
        "region_param region_loss_param yolo_param yolov3_detection_output_param "
        "box_annotator_ohem_param lstm_param warp_param augmentation_param"
    ),
}


def fork_of(field: str) -> str:
    """Return the fork or forks that have this field, or an empty string."""
    return " and ".join(fork for fork, names in _FIELDS_BY_FORK.items() if field in names.split())


def fork_fields(message: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all set fields that BVLC Caffe does not have (our own apart).

    The schema accepts them in every net. Whoever builds a layer decides whether they mean
    anything to it; what is left over should be reported, not ignored in silence.
    """
    for field, value in message.ListFields():
        here = f"{path}.{field.name}" if path else field.name
        if FIRST_FORK_NUMBER <= field.number < FIRST_OWN_NUMBER:
            yield here
        elif field.message_type is not None:
            for child in value if isinstance(value, MutableSequence) else [value]:
                yield from fork_fields(child, here)
