"""From the language to a topology: the logical graph, its optimisation, names, sub-topologies."""
