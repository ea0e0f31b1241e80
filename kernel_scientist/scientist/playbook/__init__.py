"""The rule-based agent: catalogues of transformations for C++ and Triton, and the edits behind them."""
