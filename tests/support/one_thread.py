"""PyTorch, which only some environments of the tests have."""

import importlib


def one_thread():
    """Imports PyTorch with one thread, and keeps progress bars from starting another."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    importlib.import_module("tqdm").tqdm.monitor_interval = 0
    return torch
