"""The store of objects on the disk: leases, differences of manifests, shared places, sweeps."""
