"""Lets native code look up what it uses of Python, before any other module uses native code.

A process that is forked while another thread looks something up would wait forever for it.
"""

from cartwheel._cartwheel import make_first_uses

make_first_uses()
