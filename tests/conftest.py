"""What all tests share."""

from hypothesis import settings

# No test may depend on how fast a machine is.
settings.register_profile("calmfed", deadline=None)
settings.load_profile("calmfed")
