"""The rules, a module and a page for each, in families by what they look at; read by the registry alone."""
