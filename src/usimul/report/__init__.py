"""Pages about a model, and what all pages share: style sheet, templates, charts. They fetch nothing."""
