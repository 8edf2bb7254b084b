"""Rollout workers on a simulated cluster whose nodes leave and come."""

import importlib
import logging
from itertools import islice

from tests.programs.registry import program, tell
from tests.support.ray_sessions import Leaning, cart_poles


@program
def ray_nodes():
    """Two nodes with a worker each; the node of worker 1 leaves, and later another one comes."""
    ray = importlib.import_module("ray")
    cluster_utils = importlib.import_module("ray.cluster_utils")
    workers = importlib.import_module("cartwheel.ray")
    # The driver is on a node without processors for actors, which stays.
    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
        with workers.RolloutWorkers(cart_poles(), Leaning, 2, 10, seed=1, in_flight=1) as remote:
            facts = come_and_go(cluster, nodes, remote)
        ray.shutdown()
    finally:
        cluster.shutdown()
    tell(**facts)


def come_and_go(cluster, nodes, remote):
    """Removes the node of worker 1, and adds a node when the other worker has gone on."""
    before = remote.stats().nodes
    assert remote.collect().workers == (0, 1)
    gone = next(node for node in nodes if node.node_id == before[1])
    stream = remote.rollouts()
    cluster.remove_node(gone, allow_graceful=False)
    while remote.stats().restarts[1] == 0:
        next(stream)  # until the death of the worker is known
    alone = [rollout.workers[0] for rollout in islice(stream, 5)]
    new = cluster.add_node(num_cpus=1)
    joined = remote.collect()
    stats = remote.stats()
    return {
        "nodes_of_workers": len(set(before)),
        "rollouts_of": alone,
        "joined_of": joined.workers,
        "restarts": stats.restarts.tolist(),
        "is_on_the_new_node": stats.nodes[1] == new.node_id,
    }
