"""Parameters of a net: stored once, shared by name as Caffe shares them."""

from __future__ import annotations

import math
from typing import Any

from layrubnet.engine.contract import BlobDecl, Contract
from layrubnet.engine.graph import Param
from layrubnet.engine.layer import Layer
from layrubnet.errors import NetError


class ParamTable:
    """All stored blobs of a net in Caffe's order of ``learnable_params``."""

    def __init__(self) -> None:
        self.stored: list[Param] = []
        self.by_name: dict[str, Param] = {}

    def add_layer(self, layer: Layer, contract: Contract, where: str) -> tuple[Param, ...]:
        """Store the layer's blobs, or find the ones they share; return one Param per blob."""
        specs = list(layer.spec.param)
        if len(specs) > len(contract.blobs):
            raise NetError(
                f"Too many params specified for layer {layer.name}",
                where=where,
                expected=f"at most {len(contract.blobs)} param {{ }} blocks",
                got=len(specs),
            )
        return tuple(
            self._add(layer, i, decl, specs[i] if i < len(specs) else None, where)
            for i, decl in enumerate(contract.blobs)
        )

    def _add(self, layer: Layer, index: int, decl: BlobDecl, spec: Any, where: str) -> Param:
        shared_name = spec.name if spec is not None else ""
        if shared_name in self.by_name:
            param = self.by_name[shared_name]
            self._check_shared(param, decl, spec, layer, where)
            self._merge(param, spec, "lr_mult", "lr_given", where)
            self._merge(param, spec, "decay_mult", "decay_given", where)
            param.users.append((layer.name, index))
            return param
        param = Param(
            name=f"{layer.name}/{index}",
            owner=layer.name,
            index=index,
            shape=decl.shape,
            kind=decl.kind,
            filler=decl.filler,
            shared_name=shared_name,
            users=[(layer.name, index)],
            chunk_axis=decl.chunk_axis,
        )
        if spec is not None:
            param.lr_mult, param.lr_given = spec.lr_mult, spec.HasField("lr_mult")
            param.decay_mult, param.decay_given = spec.decay_mult, spec.HasField("decay_mult")
        if decl.kind == "state":
            # Statistics are written by update_state alone, whatever the net says.
            param.lr_mult = param.decay_mult = 0.0
        if shared_name:
            self.by_name[shared_name] = param
        self.stored.append(param)
        return param

    def _check_shared(
        self, param: Param, decl: BlobDecl, spec: Any, layer: Layer, where: str
    ) -> None:
        permissive = spec.share_mode == type(spec).PERMISSIVE
        same = (
            math.prod(param.shape) == math.prod(decl.shape)
            if permissive
            else param.shape == decl.shape
        )
        if same:
            return
        raise NetError(
            f"Cannot share param '{spec.name}' owned by layer '{param.owner}' with layer "
            f"'{layer.name}'; " + ("count mismatch" if permissive else "shape mismatch"),
            where=where,
            expected=f"{param.shape} (layer {param.owner!r})",
            got=f"{decl.shape} (layer {layer.name!r})",
            hint="share_mode: PERMISSIVE allows other shapes with the same count"
            if not permissive
            else "the counts must agree",
        )

    def _merge(self, param: Param, spec: Any, field: str, given: str, where: str) -> None:
        if not spec.HasField(field):
            return
        value = getattr(spec, field)
        if getattr(param, given) and getattr(param, field) != value:
            raise NetError(
                f"Shared param '{spec.name}' has mismatched {field}",
                where=where,
                expected=f"{getattr(param, field)} (layer {param.owner!r})",
                got=value,
            )
        setattr(param, field, value)
        setattr(param, given, True)
