"""The whole suite runs with shapes and types enforced, and without a network."""

from hypothesis import settings
from jaxtyping import install_import_hook

# A deadline would fail on torch's first call; a derandomised run is the same everywhere.
settings.register_profile("adaptiveembed", deadline=None, derandomize=True)
settings.load_profile("adaptiveembed")

# Must run before the first import of the package. `pyproject.toml` closes the sockets.
install_import_hook("adaptiveembed", "beartype.beartype")
