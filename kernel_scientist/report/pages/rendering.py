"""Fills the templates of pages."""

from typing import Any

from jinja2 import Environment, PackageLoader


def html(template: str, **values: Any) -> str:
    """Return a page from its template."""
    templates = Environment(
        loader=PackageLoader("kernel_scientist.report.pages", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template(template).render(values)
