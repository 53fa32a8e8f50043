"""Architectures: one family a file, and the registry of their names."""

from calmfed.models.registry import ModelSpec, check_name, create, names, register_model

__all__ = ["ModelSpec", "check_name", "create", "names", "register_model"]
