"""What all pages share: the template environment."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

__all__ = ["page_environment"]


def page_environment(package: str = "usimul.report") -> Environment:
    """Return the environment of a package's templates: escaped, strict about names; the style sheet is found in all."""
    packages = dict.fromkeys((package, "usimul.report"))
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
