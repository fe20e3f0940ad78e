"""Settings to begin with: the pipelines found in a directory, and every other setting as a comment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.project.pipelines import PipelineInput, assemble_pipelines
from eaglelint.project.settings import Settings, load_settings

__all__ = ["starter_text", "write_starter"]

_EXAMPLE = """
# No draft config was found. A pipeline says which draft meets which target, training and serving:
# [[{header}pipeline]]
# draft = "draft"  # a config.json, or a directory that holds one
# target = "target"
# training = ["train"]
# serving = ["sglang"]  # the installed engine, or sglang@PATH
"""


def write_starter(directory: Path) -> tuple[Path, int]:
    """Write the settings of a directory.

    Returns:
        The file, and how many pipelines were found.

    Raises:
        UnreadableInput: The file cannot be read or written.
        WrongUsage: There are settings already.
    """
    own, project = directory / "eaglelint.toml", directory / "pyproject.toml"
    if own.exists():
        raise WrongUsage(f"{own.name} exists. Edit it, or remove it to begin anew.")
    path = project if project.is_file() else own
    if path is project and load_settings(project).settings != Settings():
        raise WrongUsage(f"{project.name} has [tool.eaglelint] already. Edit it there.")
    pipelines = assemble_pipelines([directory])
    try:
        before = path.read_text("utf-8") if path is project else ""
        if "[tool.eaglelint" in before:
            raise WrongUsage(f"{project.name} has [tool.eaglelint] already. Edit it there.")
        text = starter_text(pipelines, directory, header="tool.eaglelint" if path is project else "")
        gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(gap + text)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInput(f"{path.name} cannot be written: {error}. Check it and its permissions.") from None
    return path, len(pipelines)


def starter_text(pipelines: tuple[PipelineInput, ...], root: Path, *, header: str) -> str:
    """The text of the settings; ``header`` is the table's name in pyproject.toml, empty in eaglelint.toml."""
    lines = [f"[{header}]"] if header else []
    for name, field in Settings.model_fields.items():
        if name == "pipeline":
            continue
        default = field.get_default(call_default_factory=True)
        shown = "{}" if default == {} else '"FILE"' if default is None else json.dumps(default)
        lines.append(f"# {field.alias or name} = {shown}  # {field.description}")
    prefix = f"{header}." if header else ""
    for pipeline in pipelines:
        lines += ["", f"[[{prefix}pipeline]]", *_pipeline(pipeline, root)]
    return "\n".join(lines) + "\n" + ("" if pipelines else _EXAMPLE.format(header=prefix))


def _pipeline(pipeline: PipelineInput, root: Path) -> Iterator[str]:
    def shown(path: Path) -> str:
        return os.path.relpath(path, root).replace(os.sep, "/")

    yield f"draft = {json.dumps(shown(pipeline.draft))}"
    if pipeline.target is not None:
        yield f"target = {json.dumps(shown(pipeline.target))}"
    else:
        yield '# target = "..."  # several or no configs could be it'
    if pipeline.training:
        # All Python code that was found: which of it trains is for a person to say.
        yield f"training = {json.dumps([shown(path) for path in pipeline.training])}"
    serving = []
    for spec in pipeline.serving:
        engine, at, path = spec.partition("@")
        serving.append(f"{engine}@{shown(Path(path))}" if at else spec)
    if serving:
        yield f"serving = {json.dumps(serving)}"
    else:
        yield '# serving = ["sglang"]  # the installed engine, or sglang@PATH'
