"""The wiring probe: a scanned engine's own setter and forward pass, run in a world of stand-ins.

``engine.probe_engine`` is the way in. What the child process loads (``child.py`` and below) imports neither the
interpreter nor anything else of eaglelint.
"""
