"""Copies of batches to a device, and of actions back from it.

* ``device`` has :class:`~cartwheel._device.device.Device`, the operations of a device that the rest
  of this package needs. ``cuda`` implements it with PyTorch, and a fake of the tests does.
* ``transfers`` keeps the memory that copies read until they are over, and registers slabs.
* ``places`` has memory of the device and pinned memory for several batches.
* ``batches`` puts the arrays of a batch into one piece and makes tensors of its copy.
* ``mirror`` has the observations of a rollout, which are filled batch by batch.
* ``sending`` copies whole rollouts, and back.
"""
