"""The API kinds of edge.kubestellar.io, control.kubestellar.io and leafcast.io, as checked values.

`parsing.parse_kind` reads them; a field that is not known is reported by its path, never swallowed.
"""
