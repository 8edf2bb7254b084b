"""Mazes: `cartwheel.make_vec("my_game/Maze-v0", 1024)` after `import my_game`."""

import cartwheel

cartwheel.register("my_game._my_game")
