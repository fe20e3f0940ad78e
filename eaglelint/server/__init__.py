"""The language server: the same scan as the command line, on texts that are being edited. Needs the extra ``lsp``."""
