"""Push a parcel: `cartwheel.make_vec("my_physics/Push-v0", 64)` after `import my_physics`."""

import cartwheel

cartwheel.register("my_physics._my_physics")
