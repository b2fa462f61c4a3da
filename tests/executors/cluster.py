"""A Ray cluster of several nodes on this machine, for `test_ray.py`, in an interpreter that has Ray.

It prints its address, and that for Ray's client, when all nodes are there. A line on its input removes the last node,
the end of it all nodes.
Arguments: the number of nodes, the cores of each, and a folder that the last node finds Python modules in first, or -.
"""

from __future__ import annotations

import socket
import sys

from ray.cluster_utils import Cluster


def main(nodes: str, cores: str, modules: str) -> None:
    """Have a cluster until the input ends."""
    cluster, last = Cluster(), None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for number in range(int(nodes)):
        here = {"PYTHONPATH": modules} if modules != "-" and number == int(nodes) - 1 else {}
        last = cluster.add_node(
            num_cpus=int(cores), env_vars=here, include_dashboard=False, ray_client_server_port=port
        )
    sys.stdout.write(f"{cluster.address} ray://127.0.0.1:{port}\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        cluster.remove_node(last, allow_graceful=False)
        sys.stdout.write("removed\n")
        sys.stdout.flush()
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
