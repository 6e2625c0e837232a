"""The paper's appendix, checked: statements as objects, simulations under their assumptions, verdicts from numbers."""
