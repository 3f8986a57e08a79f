"""The engine: a net is compiled (graph, program, plan) and then run.

=============  =====================================================================
contract.py    what a layer declares: the only thing the rest of the engine sees
layer.py       the base class of layers and the registry of types
io.py          what a layer gets when one of its instructions runs
graph.py       layers and versioned values; built by build.py from a NetParameter
program.py     the flat list of instructions; made by lower.py from a graph
executor.py    runs a program on a device
net.py         all of it behind one object: a net with blobs and parameters
=============  =====================================================================
"""
