"""Decide which layers run backward and which values get a gradient, by Caffe's rules.

A layer needs backward when a bottom's producer does or it has a blob to learn, *and* it lies under
a loss. ``propagate_down`` overrides per bottom; ``force_backward`` turns everything on.
"""

from __future__ import annotations

from layrubnet.engine.graph import Graph, Node
from layrubnet.errors import NetError


def mark_gradients(graph: Graph) -> None:
    """Set ``needs_gradient`` (values, parameters), ``propagate`` and ``needs_backward`` (nodes)."""
    for node in graph.nodes:
        _mark_forward(node)
    _prune(graph)
    if graph.force_backward:
        _force(graph)
    for node in graph.nodes:
        differentiable = node.contract.backward_data is not None
        for j, value in enumerate(node.bottoms):
            node.propagate[j] = node.propagate[j] and differentiable
            value.needs_gradient = value.needs_gradient or node.propagate[j]
        for param in node.params:
            wanted = node.needs_backward and (param.lr_mult != 0 or graph.force_backward)
            if param.kind == "param" and node.contract.backward_weights is not None and wanted:
                param.needs_gradient = True


def _mark_forward(node: Node) -> None:
    spec = node.layer.spec
    given = list(spec.propagate_down)
    if given and len(given) != len(node.bottoms):
        raise NetError(
            "propagate_down must be given for no bottom or for each",
            where=node.layer.where,
            expected=f"0 or {len(node.bottoms)} values",
            got=len(given),
        )
    any_wanted = any(p.kind == "param" and p.lr_mult != 0 for p in node.params)
    for j, value in enumerate(node.bottoms):
        wanted = value.needs_gradient if not given else given[j]
        if j in node.contract.no_gradient:
            if given and given[j]:
                raise NetError(
                    f"{node.layer.type} layer cannot backpropagate to bottom {j} ({value.name!r})",
                    where=node.layer.where,
                    hint="labels get no gradient: leave propagate_down out or set it to false",
                )
            wanted = False
        node.propagate[j] = wanted
    node.needs_backward = any_wanted or any(node.propagate)
    for value in node.tops:
        value.needs_gradient = node.needs_backward


def _prune(graph: Graph) -> None:
    """Switch off what does not lie under a loss, or whose tops nobody propagates to."""
    under_loss: set[int] = set()
    skip: set[int] = set()
    for node in reversed(graph.nodes):
        contributes = any(node.loss_weights) or any(id(v) in under_loss for v in node.tops)
        if node.needs_backward and node.tops and all(id(v) in skip for v in node.tops):
            node.needs_backward = False
            node.propagate = [False] * len(node.bottoms)
        if not contributes:
            node.needs_backward = False
        for j, value in enumerate(node.bottoms):
            if contributes:
                under_loss.add(id(value))
            else:
                node.propagate[j] = False
            if not node.propagate[j]:
                skip.add(id(value))
    for node in graph.nodes:
        for value in node.tops:
            value.needs_gradient = False


def _force(graph: Graph) -> None:
    for node in graph.nodes:
        if node.contract.loads:
            continue
        if node.contract.backward_data is None and node.contract.backward_weights is None:
            continue
        node.needs_backward = True
        for j in range(len(node.bottoms)):
            if j not in node.contract.no_gradient:
                node.propagate[j] = True
