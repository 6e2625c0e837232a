"""The paper's appendix, checked: statements as objects, simulations under their assumptions, a status from numbers."""
