"""What the docs site needs beside its configuration: formulas, and where the API is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parents[1]


def on_startup(**_: Any) -> None:
    """Show mkdocstrings the package as it is installed, ``adapters`` within it."""
    package = ROOT / "build" / "docs_source" / "automl_plugins"
    package.mkdir(parents=True, exist_ok=True)
    for link in package.iterdir():
        link.unlink()
    modules = (path for path in (ROOT / "automl_plugins").iterdir() if path.suffix in ("", ".py"))
    for path in (*modules, ROOT / "adapters"):
        (package / path.name).symlink_to(path)


def on_config(config: Any) -> Any:
    """Render blocks of ``math`` as MathML, which browsers draw without a script from elsewhere."""
    fence = {"name": "math", "class": "math", "format": _formula}
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [fence]
    return config


def _formula(source: str, *_: Any, **__: Any) -> str:
    lines = (convert(line, display="block") for line in source.splitlines() if line.strip())
    return f'<div class="formula">{"".join(lines)}</div>'
