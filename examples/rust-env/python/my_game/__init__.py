"""Mazes: `cartwheel.make_vec("my_game/Maze-v0", 1024)` after `import my_game`."""

import cartwheel

from my_game import _my_game

cartwheel.register(_my_game)
