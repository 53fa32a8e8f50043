"""What 100 clients of the three full-size models take in memory, with two worker processes.

    python bench/memory.py

The proportional set size of all processes together (shared pages counted once), sampled while one
round of CIFAR-10's shape is walked; Linux only.
"""

import os
import tempfile
import threading
import time
from pathlib import Path

import torch

from setting import Walk, lite


def proportional_bytes(root: int) -> int:
    """Of a process and all its children, from /proc."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if int(entry.name) == root or parent == root:
                for line in (entry / "smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1]) * 1024
        except OSError:
            continue  # it ended meanwhile
    return total


def main() -> None:
    torch.set_num_threads(1)
    peak, ended = 0, False

    def watch() -> None:
        nonlocal peak
        while not ended:
            peak = max(peak, proportional_bytes(os.getpid()))
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with tempfile.TemporaryDirectory() as folder:
        config = lite(method="calm", clients=100, width=1.0, shrink=1, epochs=1)
        walk = Walk(config, Path(folder), workers=2)
        print(f"100 clients made: peak so far {peak / 2**30:.2f} GiB", flush=True)
        walk.round()
        walk.close()
    ended = True
    watcher.join()
    print(f"after a round: peak {peak / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
