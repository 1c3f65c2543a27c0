"""Real code in a made-up world: fake disks and clocks, faults from a seed, invariant checks."""
