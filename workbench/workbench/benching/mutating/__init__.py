"""Mutation testing of the referee: faults put into honest kernels, and whether its checks see them."""
