"""What all pages share: the template environment."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["page_environment"]


def page_environment() -> Environment:
    """Return the template environment of all pages: escaped, and strict about names."""
    return Environment(
        loader=PackageLoader("usimul.experiments"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
