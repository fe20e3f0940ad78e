"""Python source: found by a prefilter, indexed with ast, parsed function by function with libcst, interpreted."""
