"""Ids of the environments that come with cartwheel: all, those of MuJoCo, and the others."""

from cartwheel._cartwheel import native_envs
from cartwheel.native.mujoco.env import is_mujoco

IDS = [env_id for env_id, *_ in native_envs() if "/" not in env_id]
OF_MUJOCO = [env_id for env_id in IDS if is_mujoco(env_id)]
#: Their equations are in Rust, and pygame draws them.
OF_RUST = [env_id for env_id in IDS if env_id not in OF_MUJOCO]
