"""Push a parcel to a goal: `cartwheel.make_vec("my_physics/Push-v0", 1024)`."""

import cartwheel

from my_physics import _my_physics

cartwheel.register(_my_physics)
