"""What the engine keeps in memory of the spaces last searched."""

from memory_gateway.engine.held_columns import HeldColumns
from memory_gateway.engine.held_vectors import HeldVectors


class Held:
    """Of this process. Another that has searched an erased space lets go of it when others push it out."""

    def __init__(self) -> None:
        self.columns = HeldColumns()
        self.vectors = HeldVectors()

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        self.columns.forget(space_nos)
        self.vectors.forget(space_nos)
