"""MiniGrid, natively.

Importing the package registers its ids: after it,
``cartwheel.make_vec("cartwheel_minigrid/MiniGrid-DoorKey-8x8-v0", 1024)`` makes environments. Their
observations, rewards, random numbers and frames are those of ``minigrid`` 3.2.0, bit for bit.
"""

import cartwheel

cartwheel.register("cartwheel_minigrid._minigrid")
