"""What the engine keeps in memory of the spaces last searched."""

from memory_gateway.engine.held_columns import HeldColumns
from memory_gateway.engine.held_episodes import HeldEpisodes
from memory_gateway.engine.held_vectors import HeldVectors
from memory_gateway.engine.held_views import HeldViews


class Held:
    """Of this process. Another that has searched an erased space lets go of it when others push it out."""

    def __init__(self) -> None:
        self.columns = HeldColumns()
        self.views = HeldViews(self.columns)
        self.vectors = HeldVectors()
        self.episodes = HeldEpisodes()

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        for kept in (self.columns, self.views, self.vectors, self.episodes):
            kept.forget(space_nos)
