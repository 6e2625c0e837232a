"""lacuna: online reinforcement learning when parts of the state go missing."""

__version__ = "0.1.0"
