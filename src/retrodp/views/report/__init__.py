"""`retrodp report`: one self-contained page of what a store has published."""

from retrodp.views.report.page import TITLE, document, page, write_file

__all__ = ["TITLE", "document", "page", "write_file"]
